#pragma once

#include "orthant/base/error.hpp"

#include <string>

namespace orthant::plan {

/// What the Error says that `work` throws; "no error" if it throws none.
template <class Work>
std::string message_of(Work work) {
  try {
    work();
  } catch (const base::Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace orthant::plan
