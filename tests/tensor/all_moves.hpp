#pragma once

#include "orthant/tensor/moves.hpp"

namespace orthant::test {

/// What moves, by definition: every rank looks at every other.
inline tensor::Moves moves_by_scan(const tensor::Redistribution& boxes, int rank, int ranks) {
  tensor::Moves moves;
  const auto add_parts = [](std::vector<tensor::Move>& list, int peer, const tensor::Box& held,
                            const std::vector<tensor::Box>& wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const tensor::Box part = tensor::intersection(held, wanted[i]);
      if (!tensor::is_empty(part)) list.push_back({.peer = peer, .wanted = static_cast<int>(i), .box = part});
    }
  };
  const tensor::Box held = tensor::owned_box(boxes.held, rank);
  const std::vector<tensor::Box> wanted = tensor::wanted_boxes(boxes.wanted, rank);
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) {
      add_parts(moves.stays, rank, held, wanted);
      continue;
    }
    if (!tensor::is_empty(held)) add_parts(moves.sends, peer, held, tensor::wanted_boxes(boxes.wanted, peer));
    if (!wanted.empty()) add_parts(moves.receives, peer, tensor::owned_box(boxes.held, peer), wanted);
  }
  return moves;
}

}  // namespace orthant::test
