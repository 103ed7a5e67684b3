#pragma once

#include "orthant/base/error.hpp"

#include <span>
#include <string>

namespace orthant::comm {

/// An exception as the user meets it: one line and an exit code.
struct Failure {
  base::Exit code = base::Exit::done;
  std::string message{};
  friend bool operator==(const Failure&, const Failure&) = default;
};

/// The exception that is being handled; call it in a catch block only.
Failure current_failure();

/// Prints the line `error: ...` on stderr, after all that was written to stdout.
void print_error(const std::string& message);

/// The failures of all ranks (code `done`: this rank did not fail) as one: which ranks, and what the first of them
/// says. At least one rank must have failed.
Failure merged(std::span<const Failure> of_ranks);

}  // namespace orthant::comm
