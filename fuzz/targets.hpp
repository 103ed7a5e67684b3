#pragma once

#include <span>
#include <string>

namespace orthant::fuzz {

/// A parser of what may come from anybody. `parse` returns, or throws base::Error as the program would print it.
struct Target {
  std::string name;
  void (*parse)(const std::string& bytes);
};

std::span<const Target> targets();

/// Feeds bytes to a parser. Ends the process if it finds a mistake in it: another exception, or an error that says so.
void feed(const Target& target, const std::string& bytes);

}  // namespace orthant::fuzz
