#include "orthant/base/format.hpp"
#include "orthant/plan/attempt.hpp"
#include "orthant/plan/fit.hpp"
#include "orthant/plan/stages.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace orthant::plan {
namespace {

using model::Graph;

/// The letters of a grid.
constexpr std::array letters{&CompactGrid::n, &CompactGrid::f, &CompactGrid::c, &CompactGrid::d,
                             &CompactGrid::h, &CompactGrid::w, &CompactGrid::p};

/// No letter of a grid that can run is larger than here.
CompactGrid bounds(const Graph& graph, int micro_batches) {
  const std::int64_t samples = micro_batch_samples(graph, micro_batches);
  const Fit fit(graph, samples);
  CompactGrid most{.n = static_cast<int>(std::min<std::int64_t>(samples, 1 << 20)), .p = most_stages(graph)};
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) {
    const std::int64_t channels = graph.nodes[static_cast<std::size_t>(node)].shape.c;
    most.f = most.c = std::max(most.f, static_cast<int>(std::min<std::int64_t>(channels, 1 << 20)));
    most.d = std::max(most.d, fit.most_parts(node, tensor::Dim::d));
    most.h = std::max(most.h, fit.most_parts(node, tensor::Dim::h));
    most.w = std::max(most.w, fit.most_parts(node, tensor::Dim::w));
  }
  return most;
}

class Adviser {
 public:
  Adviser(const Graph& graph, const CompactGrid& asked, int micro_batches)
      : graph_(graph), asked_(asked), micro_batches_(micro_batches) {}

  /// Several ranks, or one where nothing else can run.
  CompactGrid nearest(std::span<const CompactGrid> wanted) const {
    for (const CompactGrid& grid : wanted) {
      if (can_run(grid)) return grid;
    }
    for (const CompactGrid& grid : below_asked()) {
      if (can_run(grid)) return grid;
    }
    for (int ranks = std::min(total_ranks(asked_), most_tried_ranks); ranks > 1;
         ranks = ranks > 8 ? ranks / 2 : ranks - 1) {
      for (const CompactGrid& grid : others(ranks)) {
        if (can_run(grid)) return grid;
      }
    }
    return {};
  }

 private:
  static constexpr int most_tried_ranks = 4096;

  [[nodiscard]] bool can_run(const CompactGrid& grid) const {
    return total_ranks(grid) > 1 && attempt(graph_, grid, micro_batches_).refusal.empty();
  }

  /// The asked grid with every letter within its bounds, and with one of them made smaller: the largest first.
  [[nodiscard]] std::vector<CompactGrid> below_asked() const {
    const CompactGrid most = bounds(graph_, micro_batches_);
    CompactGrid within = asked_;
    for (const auto letter : letters) within.*letter = std::min(within.*letter, most.*letter);
    std::vector<CompactGrid> grids{within};
    for (const auto letter : letters) {
      for (int value = within.*letter - 1; value > 0; --value) {
        grids.push_back(within);
        grids.back().*letter = value;
      }
    }
    std::stable_sort(grids.begin(), grids.end(),
                     [](const auto& a, const auto& b) { return total_ranks(a) > total_ranks(b); });
    return grids;
  }

  /// The named strategies for so many ranks.
  [[nodiscard]] std::vector<CompactGrid> others(int ranks) const {
    const auto spatial = [&](int groups) {
      const tensor::Grid space = best_spatial(graph_, ranks / groups);
      return CompactGrid{.n = groups, .d = space.d, .h = space.h, .w = space.w};
    };
    const int groups = sample_groups(micro_batch_samples(graph_, micro_batches_), ranks);
    std::vector<CompactGrid> grids{spatial(groups), spatial(1),   {.n = groups, .f = ranks / groups},
                                   {.n = ranks},    {.f = ranks}, {.c = ranks},
                                   {.p = ranks}};
    std::erase_if(grids, [&](const CompactGrid& grid) { return total_ranks(grid) != ranks; });
    return grids;
  }

  const Graph& graph_;
  CompactGrid asked_;
  int micro_batches_;
};

/// The same network with a mini-batch that has a sample for every part, if the asked grid can then run; 0 if not.
std::int64_t large_enough_batch(const Graph& graph, const CompactGrid& asked, int micro_batches) {
  if (asked.n <= micro_batch_samples(graph, micro_batches)) return 0;
  Graph larger = graph;
  const std::int64_t samples = std::int64_t{asked.n} * std::max(micro_batches, 1);
  for (model::Node& node : larger.nodes) node.shape.n = samples;
  return attempt(larger, asked, micro_batches).refusal.empty() ? samples : 0;
}

}  // namespace

std::string advice(const Graph& graph, const CompactGrid& asked, int micro_batches,
                   std::span<const CompactGrid> wanted) {
  const CompactGrid grid = Adviser(graph, asked, micro_batches).nearest(wanted);
  std::string text = total_ranks(grid) > 1 ? fmt::format("the nearest that can run is --grid {}", to_text(grid))
                                           : "nothing but one rank (--grid 1) can run here";
  if (const std::int64_t samples = large_enough_batch(graph, asked, micro_batches); samples > 0)
    text += fmt::format(", or take a mini-batch of {}", samples);
  return text;
}

}  // namespace orthant::plan
