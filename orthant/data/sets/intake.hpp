#pragma once

#include "orthant/tensor/box.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace orthant::data::sets {

/// The two tensors of a sample.
enum class Role : std::int64_t { source, target };

/// A box of the n-th sample of every mini-batch that a rank takes.
struct Take {
  int rank = 0;
  Role role = Role::source;
  std::int64_t n = 0;
  tensor::Box box;                ///< in the sample; its n is [0, 1)
  int index = 0;                  ///< among the takes of its rank
  std::int64_t offset_bytes = 0;  ///< of the box, if all boxes of the rank follow each other in order of n
};

/// The bytes of a box in memory: floats and labels have four bytes each.
std::int64_t box_bytes(const tensor::Box& box);

/// What all ranks take of every mini-batch.
class Intake {
 public:
  /// Takes are in ascending order of ranks, and those of a rank in the order of their indices. The constructor sets
  /// their offsets.
  Intake(std::vector<Take> takes, std::int64_t mini_batch, int ranks);

  [[nodiscard]] std::int64_t mini_batch() const { return static_cast<std::int64_t>(first_.size()) - 1; }
  [[nodiscard]] int ranks() const { return static_cast<int>(sums_.size()); }
  /// What ranks take of the n-th sample, in ascending order of ranks.
  [[nodiscard]] std::span<const Take> of(std::int64_t n) const;
  /// What one rank takes of it.
  [[nodiscard]] std::span<const Take> of(std::int64_t n, int rank) const;
  /// The bytes that a rank takes of the first `samples` samples of a stream that is cut into mini-batches.
  [[nodiscard]] std::int64_t bytes(int rank, std::int64_t samples) const;
  /// The largest number of samples, from the beginning of the stream, of which a rank takes no more than this.
  [[nodiscard]] std::int64_t most_samples(int rank, std::int64_t limit_bytes) const;

 private:
  /// The bytes that a rank takes up to and including one of its takes, which is of the n-th sample.
  struct Sum {
    std::int64_t n = 0, bytes = 0;
  };

  std::vector<Take> takes_;             ///< in order of n, then rank, then index
  std::vector<std::size_t> first_;      ///< per n the index of its first take, and last the number of takes
  std::vector<std::vector<Sum>> sums_;  ///< per rank, for each of its takes in order of n
};

}  // namespace orthant::data::sets
