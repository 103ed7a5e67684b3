#pragma once

#include "orthant/tensor/distribution.hpp"
#include "orthant/tensor/range_list.hpp"

#include <array>
#include <functional>
#include <vector>

namespace orthant::tensor {

/// What the parts of a grid want of a tensor. Dims are independent of each other: what a part wants along a dim depends
/// on its coordinate in that dim alone.
struct Demand {
  Grid grid;
  int first_rank = 0;
  /// Of n, d, h and w. Both ends rise with the coordinate; a part that wants nothing has an empty range.
  std::function<Range(Dim dim, int coordinate)> along;
  /// The channels of the boxes that a part wants, side by side; none of them is empty.
  std::function<RangeList(int coordinate)> channels;
};

/// A demand that is asked often: what its parts want is found once and looked up then. (Samples are not, of which there
/// may be thousands of parts: what is wanted of them is arithmetic.)
class DemandTable {
 public:
  explicit DemandTable(Demand demand);
  /// The same; the table must outlive it, where it is.
  [[nodiscard]] Demand demand() const;
  /// Along any dim; in c, the range around all boxes.
  [[nodiscard]] Range along(Dim dim, int coordinate) const;

 private:
  Demand asked_;
  std::array<std::vector<Range>, all_dims.size()> along_;
  std::vector<RangeList> channels_;
};

/// Every part wants its own block.
Demand demand_of(const Distribution& distribution);

/// The boxes that a rank wants.
std::vector<Box> wanted_boxes(const Demand& demand, int rank);

/// Who holds which boxes of one tensor, and who wants which.
struct Redistribution {
  Distribution held;
  Demand wanted;
};

/// True if every rank holds what it wants, and nothing else. Samples are taken to be cut alike.
bool is_local(const Redistribution& boxes);

/// A box that is sent to or received from a peer. `wanted` is its index in the receiver's list of wanted boxes.
struct Move {
  int peer = 0;
  int wanted = 0;
  Box box;

  bool operator==(const Move&) const = default;
};

/// What one rank sends and receives so that every rank gets what it wants. Halo exchange, gathering of channels and
/// redistribution are all of this form. The adjoint moves the same boxes the other way and sums them at their holders.
struct Moves {
  std::vector<Move> sends, receives;
  std::vector<Move> stays;  ///< what the rank both wants and holds
};

/// Peers are in ascending order, and the boxes for one peer in the order of its list. They are found from coordinates:
/// the cost grows with the number of peers, not with the number of ranks.
Moves moves_of(const Redistribution& boxes, int rank);

}  // namespace orthant::tensor
