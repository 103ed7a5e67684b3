#pragma once

#include "orthant/tensor/layout.hpp"

#include <vector>

namespace orthant::schedule {

/// Numbers, as ranges in order with gaps between them.
class Ranges {
 public:
  void add(const tensor::Range& range);
  void add(const Ranges& other);
  /// The first of `wanted` that are not in here; an empty range if all are.
  [[nodiscard]] tensor::Range missing(const Ranges& wanted) const;
  /// The first that both have; an empty range if there are none.
  [[nodiscard]] tensor::Range common(const Ranges& other) const;

 private:
  /// `range` may not begin before what is there.
  void append(const tensor::Range& range);

  std::vector<tensor::Range> ranges_;
};

/// Some of the bytes of a buffer, which is looked at as blocks of `period` bytes. Boxes of a tensor repeat from block
/// to block if the period is well chosen, so that a few numbers describe them, however many gaps they have.
class ByteSet {
 public:
  /// Sets are put together only with those of the same period.
  explicit ByteSet(std::int64_t period) : period_(period) {}
  ByteSet(std::int64_t period, const tensor::Range& bytes) : period_(period) { add(bytes); }
  /// The items of a layout, each of so many bytes, in a buffer that begins at `first_byte`.
  ByteSet(std::int64_t period, const tensor::Layout& layout, std::int64_t item_bytes, std::int64_t first_byte);

  void add(const tensor::Range& bytes);
  void add(const ByteSet& other);
  /// The first bytes of `wanted` that are not in here; an empty range if all are.
  [[nodiscard]] tensor::Range missing(const ByteSet& wanted) const;
  /// The first bytes that both have; an empty range if there are none.
  [[nodiscard]] tensor::Range common(const ByteSet& other) const;

 private:
  /// The blocks that have the bytes [residues.lo, residues.hi), counted from their beginning.
  struct Lane {
    tensor::Range residues;
    Ranges blocks;
  };

  void add(const tensor::Range& residues, const Ranges& blocks);
  void add_runs(std::int64_t begin, std::int64_t run, std::int64_t stride, std::int64_t count);
  [[nodiscard]] tensor::Range bytes_of(const tensor::Range& residues, const tensor::Range& blocks) const;

  std::int64_t period_;
  std::vector<Lane> lanes_;  ///< in the order of their residues, which have none in common
};

/// The period that suits a layout: the distance of its shortest gaps; 0 if it has none.
std::int64_t period_of(const tensor::Layout& layout, std::int64_t item_bytes);

}  // namespace orthant::schedule
