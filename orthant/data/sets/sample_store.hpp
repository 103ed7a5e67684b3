#pragma once

#include "orthant/data/io/large_block.hpp"
#include "orthant/data/sets/intake.hpp"
#include "orthant/data/sets/orientation.hpp"

#include <functional>
#include <optional>

namespace orthant::data::sets {

/// How samples were read for the first time: the i-th sample of the epoch was order[i], turned.
struct Filling {
  std::vector<std::int64_t> order;
  std::int64_t kept = 0;  ///< the number of samples, from the beginning, that are kept
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

/// The boxes that this rank read in the first epoch, and what the other ranks keep. The latter follows from what each
/// rank takes and from the order of the samples, so that no rank has to ask another.
class SampleStore {
 public:
  /// `intake` must outlive the store. Allocates what `rank` keeps.
  SampleStore(const Intake& intake, Filling filling, int rank);

  [[nodiscard]] std::int64_t bytes() const { return memory_.bytes(); }
  /// The position of a sample in the first epoch, if it is kept.
  [[nodiscard]] std::optional<std::int64_t> position(std::int64_t sample) const;
  /// The box that a rank keeps of a kept sample for one of its takes.
  [[nodiscard]] tensor::Box kept_box(std::int64_t sample, const Take& holder) const;
  /// The same with its memory, for a take of this rank.
  [[nodiscard]] Held held(std::int64_t sample, const Take& holder) const;
  /// The contributions that together make up `box` of a kept sample, from as few ranks as possible. Among equals,
  /// `rank` itself is preferred.
  [[nodiscard]] std::vector<Contribution> contributions(std::int64_t sample, Role role, const tensor::Box& box,
                                                        int rank) const;

 private:
  const Intake& intake_;
  Filling filling_;
  int rank_;
  std::vector<std::int64_t> positions_;  ///< per sample
  io::LargeBlock memory_;
};

/// True if `part` of a dense `box` is contiguous in memory.
bool is_contiguous(const tensor::Box& box, const tensor::Box& part);
/// The bytes of such a part.
std::span<std::byte> bytes_of(const Held& from, const tensor::Box& part);
/// Copies `part`, which both boxes contain.
void copy_part(const Held& from, const Held& to, const tensor::Box& part);

}  // namespace orthant::data::sets
