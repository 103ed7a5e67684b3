#pragma once

#include "orthant/tensor/box.hpp"

#include <functional>
#include <vector>

namespace orthant::tensor {

/// The boxes of one tensor that each rank holds (no cell is held twice) and the boxes that it wants.
struct Redistribution {
  int ranks = 1;
  std::function<Box(int rank)> held;
  std::function<std::vector<Box>(int rank)> wanted;
};

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

/// Peers are in ascending order, and the boxes for one peer in the order of its list.
Moves moves_of(const Redistribution& boxes, int rank);

}  // namespace orthant::tensor
