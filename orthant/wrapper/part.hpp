#pragma once

#include "orthant/wrapper/problem.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orthant::wrapper {

/// How a piece is computed: so many samples at once or, where that is one, slab by slab along the outermost spatial
/// dim.
struct Cut {
  std::int64_t samples = 1, slabs = 1;
  bool operator==(const Cut&) const = default;
};

/// A slab of a piece as a problem of its own, in the memory of the whole: where its first rows are.
struct Part {
  Problem problem;
  std::int64_t src_row = 0, dst_row = 0;
};

/// The parts of a piece from top to bottom. Slabs have rows in multiples of four, so there may be fewer than asked for.
/// Nothing if a slab would have no rows to read.
std::optional<std::vector<Part>> parts_of(const Problem& problem, const Cut& cut);

/// "8", or "1/16" for sixteen slabs of one sample; nothing if it is neither.
std::string to_text(const Cut& cut);
std::optional<Cut> cut_from(const std::string& text);

}  // namespace orthant::wrapper
