#pragma once

#include "orthant/tensor/distribution.hpp"

#include <array>
#include <span>
#include <vector>

namespace orthant::tensor {

/// Ranks at regular distances, in rising order: those of a grid that agree in some coordinates. It is arithmetic, not a
/// list, so that it costs the same for two ranks and for a hundred thousand. Groups of the same ranks are equal.
class RankGroup {
 public:
  /// Nobody.
  RankGroup() = default;
  /// The ranks that share the tensor and agree with `rank` in the coordinates of `fixed`.
  RankGroup(const Distribution& distribution, int rank, std::span<const Dim> fixed);

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] int operator[](int place) const;
  [[nodiscard]] int front() const { return first_; }
  /// The place of a rank; -1 if it is no member.
  [[nodiscard]] int place_of(int rank) const;
  [[nodiscard]] bool contains(int rank) const { return place_of(rank) >= 0; }
  [[nodiscard]] std::vector<int> to_list() const;

  auto operator<=>(const RankGroup&) const = default;

 private:
  /// `count` steps of `stride` ranks.
  struct Digit {
    int count = 1, stride = 0;
    auto operator<=>(const Digit&) const = default;
  };

  int first_ = 0;
  int size_ = 0;
  int digits_ = 0;
  std::array<Digit, all_dims.size()> digit_{};  ///< the slowest first; neighbours that continue each other are one
};

}  // namespace orthant::tensor
