#pragma once

#include "orthant/tensor/layout.hpp"

#include <vector>

namespace orthant::schedule {

/// Some of the bytes of a buffer: ranges in order, with gaps between them.
class ByteSet {
 public:
  ByteSet() = default;
  explicit ByteSet(const tensor::Range& bytes) { append(bytes); }
  /// The items of a layout, each of so many bytes, in a buffer that begins at `first_byte`.
  ByteSet(const tensor::Layout& layout, std::int64_t item_bytes, std::int64_t first_byte);

  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  /// The first bytes of `wanted` that are not in here; empty if all are.
  [[nodiscard]] tensor::Range missing(const ByteSet& wanted) const;
  [[nodiscard]] bool covers(const ByteSet& wanted) const { return missing(wanted) == tensor::Range{}; }
  /// The first bytes that both have; empty if there are none.
  [[nodiscard]] tensor::Range common(const ByteSet& other) const;
  [[nodiscard]] bool meets(const ByteSet& other) const { return common(other) != tensor::Range{}; }
  void add(const ByteSet& other);

 private:
  /// `bytes` may not begin before what is there.
  void append(const tensor::Range& bytes);

  std::vector<tensor::Range> ranges_;
};

}  // namespace orthant::schedule
