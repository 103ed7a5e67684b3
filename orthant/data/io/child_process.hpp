#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace orthant::data::io {

/// What a child may use for one item, in addition to what the parent already uses.
struct ChildLimits {
  std::int64_t memory_bytes = std::int64_t{2} << 30;
  int cpu_seconds = 60;
};

/// The line of text that a child returned for an item, or how the child died while working on it ("signal 11").
struct ChildResult {
  std::string text;
  std::string death;
};

/// Runs work(0), work(1), ... in a child process, so that a crash in a library ends only the child; a new child
/// continues with the next item. `work` returns one line, must not throw, and makes no MPI call.
std::vector<ChildResult> run_in_child(std::size_t count, const std::function<std::string(std::size_t)>& work,
                                      const ChildLimits& limits = {});

}  // namespace orthant::data::io
