#pragma once

#include "orthant/tensor/box.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace orthant::data::sets {

/// The two tensors of a sample.
enum class Role : std::int64_t { source, target };

/// A box that a rank takes of the n-th sample of every mini-batch.
struct Take {
  int rank = 0;
  Role role = Role::source;
  std::int64_t n = 0;
  tensor::Box box;                ///< in the sample; its n is [0, 1)
  int index = 0;                  ///< among those of its rank, as the rank counts them
  std::int64_t offset_bytes = 0;  ///< where the rank's boxes of a mini-batch lie one after the other, in order of n
};

/// Bytes of a box in memory: floats and labels have four each.
std::int64_t box_bytes(const tensor::Box& box);

/// What all ranks take of every mini-batch.
class Intake {
 public:
  /// Ranks in rising order, and those of a rank in the order of their indices; offsets are found here.
  Intake(std::vector<Take> takes, std::int64_t mini_batch, int ranks);

  [[nodiscard]] std::int64_t mini_batch() const { return static_cast<std::int64_t>(first_.size()) - 1; }
  [[nodiscard]] int ranks() const { return static_cast<int>(bytes_.size()); }
  /// What ranks take of the n-th sample, in rising order.
  [[nodiscard]] std::span<const Take> of(std::int64_t n) const;
  /// What a rank takes of the first `samples` samples of a stream that is cut into mini-batches.
  [[nodiscard]] std::int64_t bytes(int rank, std::int64_t samples) const;
  /// The most samples from the beginning of the stream of which no rank takes more than its limit.
  [[nodiscard]] std::int64_t most_samples(std::span<const std::int64_t> limit_bytes) const;

 private:
  std::vector<Take> takes_;         ///< in order of n, then rank, then index
  std::vector<std::size_t> first_;  ///< per n, and the end
  std::vector<std::vector<std::int64_t>>
      bytes_;  ///< per rank: what it takes of the samples below n, n = 0 ... mini-batch
};

}  // namespace orthant::data::sets
