#pragma once

#include "orthant/base/error.hpp"

#include <span>
#include <string>

namespace orthant::comm {

/// An exception as the user sees it: one line and an exit code.
struct Failure {
  base::Exit code = base::Exit::done;
  std::string message{};
  friend bool operator==(const Failure&, const Failure&) = default;
};

/// The exception that is being handled; call it in a catch block only.
Failure current_failure();

/// Prints the line `error: ...` on stderr, after flushing stdout.
void print_error(const std::string& message);

/// Combines the failures of all ranks (code `done` means that a rank did not fail) into one, which names the ranks that
/// failed and has the message of the first of them. At least one rank must have failed.
Failure merged(std::span<const Failure> of_ranks);

}  // namespace orthant::comm
