#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace orthant::base {

/// The exit codes of the program, which docs/errors.md documents.
enum class Exit : int {
  done = 0,
  usage = 64,
  bad_data = 65,
  missing_input = 66,
  internal = 70,
  does_not_fit = 71,
  io = 74,
  busy = 75,
  disagreement = 76,
  stopped = 85,
  watchdog = 86,
  non_finite = 87,
};

/// Something outside the program is wrong. The message is one line: what, where, why, and what to do.
class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] Exit code() const { return code_; }

 private:
  Exit code_;
};

/// Throws an Error with a formatted message.
template <class... Args>
[[noreturn]] void fail(Exit code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace orthant::base
