#include "orthant/train/speakers.hpp"

namespace orthant::train {
namespace {

// Which shard a rank holds depends on its coordinate in c alone, so the first holder has 0 in all other dims.
tensor::Grid only_channels(const tensor::Grid& at) { return {.n = 0, .c = at.c, .d = 0, .h = 0, .w = 0}; }

}  // namespace

std::vector<int> speakers_of(const plan::Plan& plan, const model::Graph& graph, int node) {
  const tensor::Distribution dst = plan::distribution(plan, graph, node);
  std::vector<int> ranks(static_cast<std::size_t>(dst.grid.c));
  for (int c = 0; c < dst.grid.c; ++c)
    ranks[static_cast<std::size_t>(c)] = dst.first_rank + tensor::index_of(dst.grid, only_channels({.c = c}));
  return ranks;
}

bool speaks(const plan::Plan& plan, const model::Graph& graph, int node, int rank) {
  const tensor::Distribution dst = plan::distribution(plan, graph, node);
  if (!tensor::takes_part(dst, rank)) return false;
  const tensor::Grid at = tensor::coordinates(dst.grid, rank - dst.first_rank);
  return at == only_channels(at);
}

}  // namespace orthant::train
