#pragma once

#include "orthant/microbatch/candidate.hpp"
#include "orthant/wrapper/way.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace orthant::wrapper {

/// What a way takes.
struct Cost {
  double piece_seconds = 0;
  double once_seconds = 0;  ///< before the first piece and after the last
  std::int64_t workspace_bytes = 0;
};

/// By the labels of ways.
using Costs = std::map<std::string, Cost>;

/// Runs ways on the tensors of a program that waits for the result, whatever they leave in it. They take turns, each
/// time on other samples, and those that fall behind per sample are tried no more.
Costs measure(const std::vector<Way*>& ways, const Tensors& tensors, std::int64_t samples, std::byte* workspace);

/// The costs as a table for a mini-batch: what happens once is shared by all pieces.
microbatch::Table table_of(const Costs& costs, std::int64_t samples);

/// What a label says; throws Error where it is none.
struct Label {
  std::string kind;
  Cut cut;
};
Label read_label(const std::string& label);

}  // namespace orthant::wrapper
