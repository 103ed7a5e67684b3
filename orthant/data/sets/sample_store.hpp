#pragma once

#include "orthant/data/io/large_block.hpp"
#include "orthant/data/sets/intake.hpp"
#include "orthant/data/sets/orientation.hpp"

#include <functional>
#include <optional>

namespace orthant::data::sets {

/// How samples came when they were read for the first time: the i-th of the epoch was order[i], turned.
struct Filling {
  std::vector<std::int64_t> order;
  std::int64_t kept = 0;  ///< so many from the beginning are kept
  SampleShape shape;
  std::function<Orientation(std::int64_t sample)> orientation;
};

/// A part of a box, and the take that keeps it.
struct Contribution {
  const Take* holder = nullptr;
  tensor::Box box;
};

/// A dense channels-last box in memory.
struct Held {
  std::span<std::byte> bytes;
  tensor::Box box;
};

/// The boxes that this rank read in the first epoch, and the knowledge of what the others keep: it follows from what
/// each takes and from the order, so no rank has to ask.
class SampleStore {
 public:
  /// `intake` must outlive the store. Allocates what `rank` keeps.
  SampleStore(const Intake& intake, Filling filling, int rank);

  [[nodiscard]] std::int64_t bytes() const { return memory_.bytes(); }
  /// When a sample was read first, if it is kept.
  [[nodiscard]] std::optional<std::int64_t> position(std::int64_t sample) const;
  /// The box that a rank keeps of a kept sample for one of its takes.
  [[nodiscard]] tensor::Box kept_box(std::int64_t sample, const Take& holder) const;
  /// The same with its memory, for this rank's takes.
  [[nodiscard]] Held held(std::int64_t sample, const Take& holder) const;
  /// The contributions that together are `box` of a kept sample, from as few ranks as may be; `rank` rather asks
  /// itself.
  [[nodiscard]] std::vector<Contribution> contributions(std::int64_t sample, Role role, const tensor::Box& box,
                                                        int rank) const;

 private:
  const Intake& intake_;
  Filling filling_;
  int rank_;
  std::vector<std::int64_t> positions_;  ///< per sample
  io::LargeBlock memory_;
};

/// True if `part` of a dense `box` lies in one piece.
bool is_contiguous(const tensor::Box& box, const tensor::Box& part);
/// The bytes of such a part.
std::span<std::byte> bytes_of(const Held& from, const tensor::Box& part);
/// Copies `part`, which both hold.
void copy_part(const Held& from, const Held& to, const tensor::Box& part);

}  // namespace orthant::data::sets
