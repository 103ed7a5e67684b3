#pragma once

#include "orthant/base/error.hpp"

#include <string>

namespace orthant::model {

/// What `work` says when it throws: "<exit code>: <message>"; "nothing" if it does not throw.
template <class Work>
std::string message_of(Work work) {
  try {
    work();
  } catch (const base::Error& error) {
    return std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  }
  return "nothing";
}

}  // namespace orthant::model
