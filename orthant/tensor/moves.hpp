#pragma once

#include "orthant/tensor/box.hpp"

#include <functional>
#include <vector>

namespace orthant::tensor {

/// The boxes of one tensor that each rank holds (no cell twice) and those it wants.
struct Redistribution {
  int ranks = 1;
  std::function<Box(int rank)> held;
  std::function<std::vector<Box>(int rank)> wanted;
};

/// A box that goes to or comes from a peer. `wanted` is its place in the receiver's list of wanted boxes.
struct Move {
  int peer = 0;
  int wanted = 0;
  Box box;

  bool operator==(const Move&) const = default;
};

/// What one rank sends and receives so that every rank gets what it wants: halo exchange, gather and redistribution
/// alike. Read backwards, with sums at the holders, it is the adjoint.
struct Moves {
  std::vector<Move> sends, receives;
  std::vector<Move> stays;  ///< what the rank wants and holds itself
};

/// Peers in rising order, and the boxes for one peer in the order of its list.
Moves moves_of(const Redistribution& boxes, int rank);

}  // namespace orthant::tensor
