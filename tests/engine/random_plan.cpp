#include "tests/engine/random_plan.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/one_of.hpp"
#include "orthant/base/random.hpp"
#include "orthant/plan/exchange_forms.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

namespace orthant::test {
namespace {

int pick(Random& random, int lo, int hi) { return static_cast<int>(random.integer(lo, hi)); }

/// A grid of at most `most` parts that has no more parts than cells in any dim.
tensor::Grid random_grid(const tensor::Shape& shape, int most, bool cuts_channels, Random& random) {
  tensor::Grid grid;
  std::vector<tensor::Dim> dims(tensor::all_dims.begin(), tensor::all_dims.end());
  while (!dims.empty()) {
    const auto chosen = dims.begin() + pick(random, 0, static_cast<int>(dims.size()) - 1);
    const tensor::Dim dim = *chosen;
    dims.erase(chosen);
    if (dim == tensor::Dim::c && !cuts_channels) continue;
    const auto room = static_cast<int>(std::min<std::int64_t>(shape[dim], most / tensor::parts(grid)));
    grid[dim] = pick(random, 0, 1) == 0 ? room : pick(random, 1, room);
  }
  return grid;
}

/// Channels the node may be cut between; 0 if it may not be.
struct ChannelRoom {
  const model::Node& node;
  const model::Graph& graph;

  std::int64_t operator()(const model::Softmax&) const { return 0; }
  std::int64_t operator()(const model::SampleNorm& op) const {
    return op.kind == model::SampleNormKind::layer ? 0 : node.shape.c;
  }
  std::int64_t operator()(const model::Flatten&) const {
    return graph.nodes[static_cast<std::size_t>(node.srcs.front())].shape.c;
  }
  template <base::OneOf<model::Input, model::Conv, model::ConvTranspose, model::Pool, model::GlobalAveragePool,
                        model::Dense, model::BatchNorm, model::Activation, model::PRelu, model::Affine, model::Scale,
                        model::Dropout, model::Add, model::Multiply, model::Resize, model::Slice, model::Pad,
                        model::Concat, model::GlobalMaxPool, model::ChannelShuffle, model::PixelShuffle>
                Other>
  std::int64_t operator()(const Other&) const {
    return node.shape.c;
  }
};

bool sums_channels(const model::Op& op) {
  if (const auto* conv = std::get_if<model::Conv>(&op)) return conv->groups == 1;
  if (const auto* conv = std::get_if<model::ConvTranspose>(&op)) return conv->groups == 1;
  return std::holds_alternative<model::Dense>(op);
}

}  // namespace

bool can_run(const plan::Plan& plan, const model::Graph& graph) {
  try {
    plan::verify(plan, graph);
    return true;
  } catch (const base::Error&) {
    return false;
  }
}

namespace {

/// Those whose results do not depend on the plan on small whole numbers.
const std::vector<model::Algorithm>& exact_algorithms() {
  static const std::vector<model::Algorithm> algorithms = [] {
    std::vector<model::Algorithm> exact;
    std::copy_if(model::named_algorithms.begin(), model::named_algorithms.end(), std::back_inserter(exact),
                 [](model::Algorithm one) { return model::error_class(one) == model::ErrorClass::exact; });
    return exact;
  }();
  return algorithms;
}

/// Pieces of one to three samples in one to three slabs, out of the digits of `number`; every other time none.
std::vector<model::ConvPiece> pieces_of(int number) {
  const std::vector<model::Algorithm>& algorithms = exact_algorithms();
  const int count = static_cast<int>(algorithms.size());
  std::vector<model::ConvPiece> pieces;
  if (number % 2 == 0) return pieces;
  for (int rest = number / 2; rest > 0; rest /= 9 * count)
    pieces.push_back({.algorithm = algorithms[static_cast<std::size_t>(rest / 9 % count)],
                      .samples = 1 + rest % 3,
                      .slabs = 1 + rest / 3 % 3});
  return pieces;
}

/// One draw: a digit per pass, of which 0 leaves the choice open. Pieces follow from it.
plan::KernelChoices random_kernels(Random& random) {
  const std::vector<model::Algorithm>& algorithms = exact_algorithms();
  const int digits = static_cast<int>(algorithms.size()) + 1;
  int number = pick(random, 0, digits * digits * digits - 1);
  plan::KernelChoices kernels;
  for (const model::Pass pass : model::all_passes) {
    const int digit = number % digits;
    number /= digits;
    if (digit == 0) continue;
    kernels[pass] = {
        .algorithm = algorithms[static_cast<std::size_t>(digit) - 1],
        .seconds = 0.1 * number,
        .scratch_bytes = number,
        .prepare_weights = number % 2 == 1,
        .pieces = pieces_of(static_cast<int>(base::keyed(static_cast<std::uint64_t>(number), digit) % 10000))};
    if (!kernels[pass].pieces.empty()) kernels[pass].algorithm = kernels[pass].pieces.front().algorithm;
  }
  return kernels;
}

plan::ExchangeForms random_forms(Random& random) {
  plan::ExchangeForms forms;
  const auto any_of = [&](const auto& known) {
    return known[static_cast<std::size_t>(pick(random, 0, static_cast<int>(known.size()) - 1))];
  };
  forms.sums.form = any_of(plan::forms_of_sums);
  forms.buckets.form = any_of(plan::forms_of_buckets);
  forms.sums.direct_up_to = pick(random, 0, 4);
  forms.buckets.direct_up_to = pick(random, 0, 4);
  forms.two_levels = pick(random, 0, 3) > 0;
  forms.most_ranks_per_machine = pick(random, 1, 4);
  return forms;
}

plan::Plan any_plan(const model::Graph& graph, int ranks, Random& random) {
  plan::Plan plan = plan::serial_plan(graph);
  plan.ranks = ranks;
  plan.exchanges = random_forms(random);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const model::Node& node = graph.nodes[i];
    plan::NodePlan& entry = plan.nodes[i];
    tensor::Shape room = node.shape;
    room.c = std::visit(ChannelRoom{node, graph}, node.op);
    const bool same = i > 0 && pick(random, 0, 2) == 0 && node.shape == graph.nodes[i - 1].shape && room.c > 0;
    if (same) {
      entry.grid = plan.nodes[i - 1].grid;
      entry.first_rank = plan.nodes[i - 1].first_rank;
    } else {
      entry.grid = random_grid(room, ranks, room.c > 0, random);
      entry.first_rank = pick(random, 0, ranks - tensor::parts(entry.grid));
    }
    if (!sums_channels(node.op)) continue;
    entry.kernels = random_kernels(random);
    do {
      entry.channel_parts = pick(random, 1, entry.grid.c);
    } while (entry.grid.c % entry.channel_parts != 0);
  }
  return plan;
}

}  // namespace

plan::Plan random_plan(const model::Graph& graph, int ranks, Random& random) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    plan::Plan plan = any_plan(graph, ranks, random);
    if (can_run(plan, graph)) return plan;
    if (attempt % 100 == 99 && ranks > 1) --ranks;  // too many for so small a network
  }
  return plan::serial_plan(graph);
}

}  // namespace orthant::test
