#include "orthant/planner/shortage.hpp"

#include "orthant/base/format.hpp"
#include "orthant/planner/planner.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace orthant::planner {
namespace {

std::string size_text(double bytes) {
  return bytes < (1 << 30) ? fmt::format("{:.1f} MiB", bytes / (1 << 20))
                           : fmt::format("{:.2f} GiB", bytes / (1 << 30));
}

std::string largest_part(const oracle::Memory& memory) {
  const std::array parts{std::pair(memory.weights, "weights"),
                         std::pair(memory.gradients, "gradients"),
                         std::pair(memory.state, "optimizer's state"),
                         std::pair(memory.activations, "activations"),
                         std::pair(memory.halos, "halos"),
                         std::pair(memory.messages, "messages"),
                         std::pair(memory.workspace, "workspace"),
                         std::pair(memory.samples, "samples"),
                         std::pair(memory.process, "the process")};
  return std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

/// The fewest ranks, doubled from what there are, under which something fits; 0 if even many are not enough.
int enough_ranks(const model::Graph& graph, PlanningOptions options, const FitsSomehow& fits) {
  constexpr int most_doublings = 5;
  constexpr int most_ranks = 8192;
  for (int i = 0; i < most_doublings && options.ranks * 2 <= most_ranks; ++i) {
    options.ranks *= 2;
    if (fits(graph, options)) return options.ranks;
  }
  return 0;
}

std::int64_t small_enough_batch(const model::Graph& graph, const PlanningOptions& options, const FitsSomehow& fits) {
  for (std::int64_t samples = graph.nodes.front().shape.n / 2; samples >= 1; samples /= 2)
    if (fits(with_mini_batch(graph, samples), options)) return samples;
  return 0;
}

}  // namespace

std::string shortage(const model::Graph& graph, const PlanningOptions& options, const Candidate& smallest,
                     double memory_bytes, const FitsSomehow& fits) {
  const auto needed = static_cast<double>(smallest.prediction.memory.total());
  std::string text =
      fmt::format("nothing fits: {} needs least, {} per rank, {} more than the {} there are, mostly for {}",
                  smallest.name, size_text(needed), size_text(needed - memory_bytes), size_text(memory_bytes),
                  largest_part(smallest.prediction.memory));
  const int ranks = enough_ranks(graph, options, fits);
  const std::int64_t samples = small_enough_batch(graph, options, fits);
  if (ranks > 0) text += fmt::format("; {} ranks would be enough", ranks);
  if (samples > 0) text += fmt::format("; a mini-batch of {} would fit", samples);
  if (ranks == 0 && samples == 0) text += "; neither more ranks nor a smaller mini-batch would do";
  return text;
}

}  // namespace orthant::planner
