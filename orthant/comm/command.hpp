#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace orthant::comm {

/// How another program ended.
struct Answer {
  int code = -1;     ///< exit code, or -1 if there was none in time
  std::string text;  ///< what it printed
};

/// What becomes of what a program prints as errors.
enum class Errors { collected, dropped };

/// Runs a program with empty stdin, for at most so long, and collects what it prints.
Answer run_command(std::vector<std::string> words, std::chrono::seconds patience, Errors errors = Errors::collected);

}  // namespace orthant::comm
