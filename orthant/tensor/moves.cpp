#include "orthant/tensor/moves.hpp"

namespace orthant::tensor {
namespace {

void add_parts(std::vector<Move>& list, int peer, const Box& held, const std::vector<Box>& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Box part = intersection(held, wanted[i]);
    if (!is_empty(part)) list.push_back({.peer = peer, .wanted = static_cast<int>(i), .box = part});
  }
}

}  // namespace

Moves moves_of(const Redistribution& boxes, int rank) {
  Moves moves;
  const Box held = boxes.held(rank);
  const std::vector<Box> wanted = boxes.wanted(rank);
  for (int peer = 0; peer < boxes.ranks; ++peer) {
    if (peer == rank) {
      add_parts(moves.stays, rank, held, wanted);
      continue;
    }
    if (!is_empty(held)) add_parts(moves.sends, peer, held, boxes.wanted(peer));
    if (!wanted.empty()) add_parts(moves.receives, peer, boxes.held(peer), wanted);
  }
  return moves;
}

}  // namespace orthant::tensor
