#include "orthant/cli/plan_remedies.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/plan/groups.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace orthant::cli {
namespace {

using tensor::Dim;
using tensor::Grid;

constexpr std::size_t layers_shown = 3;
constexpr double least_share = 0.05;

double seconds_of(const oracle::LayerTime& layer) { return layer.compute_seconds + layer.waiting_seconds; }

/// The layers that take most time, those that wait first.
std::vector<oracle::LayerTime> heaviest(const oracle::Prediction& prediction) {
  std::vector<oracle::LayerTime> layers = prediction.layers;
  std::stable_sort(layers.begin(), layers.end(), [](const oracle::LayerTime& a, const oracle::LayerTime& b) {
    return 4 * a.waiting_seconds + a.compute_seconds > 4 * b.waiting_seconds + b.compute_seconds;
  });
  std::erase_if(layers, [&](const auto& layer) { return seconds_of(layer) < least_share * prediction.seconds; });
  if (layers.size() > layers_shown) layers.resize(layers_shown);
  return layers;
}

/// Grids of as many parts, in which a factor two went from one dim to another.
std::vector<Grid> neighbours_of(const Grid& grid) {
  constexpr std::array dims{Dim::n, Dim::c, Dim::d, Dim::h, Dim::w};
  std::vector<Grid> grids;
  for (const Dim from : dims) {
    for (const Dim to : dims) {
      if (from == to || grid[from] % 2 != 0) continue;
      Grid other = grid;
      other[from] /= 2;
      other[to] *= 2;
      grids.push_back(other);
    }
  }
  return grids;
}

/// The plan with the group of a node cut in another way; nothing if it cannot be.
std::optional<plan::Plan> with_cut(const Question& question, const plan::Plan& plan, const std::vector<int>& group,
                                   const Grid& grid) {
  plan::Plan changed = plan;
  for (const int node : group) {
    plan::NodePlan& one = changed.nodes[static_cast<std::size_t>(node)];
    one.grid = grid;
    one.channel_parts = 1;
    one.kernels = {};
  }
  try {
    plan::verify(changed, question.graph);
  } catch (const base::Error&) {
    return {};
  }
  return changed;
}

struct Improvement {
  Grid grid;
  double seconds = 0;
  std::int64_t bytes = 0;
};

std::optional<Improvement> best_neighbour(const Question& question, const planner::Candidate& candidate, int node) {
  const plan::Plan& plan = candidate.plan;
  std::vector<int> group{node};
  for (const std::vector<int>& one : plan::grid_groups(question.graph))
    if (std::find(one.begin(), one.end(), node) != one.end()) group = one;
  const Grid now = plan.nodes[static_cast<std::size_t>(node)].grid;
  std::optional<Improvement> best;
  for (const Grid& grid : neighbours_of(now)) {
    const auto changed = with_cut(question, plan, group, grid);
    if (!changed) continue;
    const oracle::Prediction prediction =
        oracle::predict(question.graph, *changed, question.profile, question.options.step);
    if (!best || prediction.seconds < best->seconds) best = {grid, prediction.seconds, prediction.memory.total()};
  }
  return best;
}

std::string largest_part(const oracle::LayerTime& layer) {
  const auto part = std::max_element(layer.parts.begin(), layer.parts.end()) - layer.parts.begin();
  return oracle::name_of(static_cast<oracle::Part>(part));
}

int node_of(const model::Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].name == name) return static_cast<int>(i);
  return -1;
}

std::string remedy(const Question& question, const planner::Candidate& candidate, const oracle::LayerTime& layer) {
  const oracle::Prediction& prediction = candidate.prediction;
  const std::string what = fmt::format("{}: {:.0f} % of the step, mostly {}", layer.name,
                                       100 * seconds_of(layer) / prediction.seconds, largest_part(layer));
  const int node = node_of(question.graph, layer.name);
  if (node < 0 || candidate.plan.ranks == 1) return what;
  const auto other = best_neighbour(question, candidate, node);
  if (!other) return what + "; it cannot be cut otherwise by moving a factor two";
  const std::string cuts = fmt::format("{} instead of {}", tensor::to_text(other->grid),
                                       tensor::to_text(candidate.plan.nodes[static_cast<std::size_t>(node)].grid));
  const double change = other->seconds / prediction.seconds - 1;
  if (change > -0.005)
    return fmt::format("{}; the nearest other cut, {}, would not help ({:+.1f} %)", what, cuts, 100 * change);
  return fmt::format("{}; {}: {:+.1f} % time, {:+.1f} % memory", what, cuts, 100 * change,
                     100 * (static_cast<double>(other->bytes) / static_cast<double>(prediction.memory.total()) - 1));
}

/// The fastest named strategy that fits on so many ranks.
std::optional<planner::Candidate> fastest_named(const Question& question, int ranks) {
  planner::PlanningOptions options = question.options;
  options.ranks = ranks;
  options.search = false;
  const planner::Candidate best = planner::plan_best(question.graph, question.profile, options).best;
  return best.fits ? std::optional(best) : std::nullopt;
}

}  // namespace

std::vector<std::string> remedies(const Question& question, const planner::Candidate& candidate) {
  std::vector<std::string> lines;
  for (const oracle::LayerTime& layer : heaviest(candidate.prediction))
    lines.push_back(remedy(question, candidate, layer));
  return lines;
}

UsefulRanks useful_ranks(const Question& question) {
  constexpr double worth_it = 0.9;
  constexpr int most = 8192, most_doublings = 4;
  UsefulRanks useful{.ranks = question.options.ranks};
  const auto here = fastest_named(question, useful.ranks);
  if (!here) return useful;
  useful.seconds = here->prediction.seconds;
  useful.strategy = here->name;
  for (int i = 0; i < most_doublings && 2 * useful.ranks <= most; ++i) {
    const auto twice = fastest_named(question, 2 * useful.ranks);
    if (!twice) {
      useful.limit = "no named strategy can run on twice as many";
      return useful;
    }
    if (twice->prediction.seconds > worth_it * useful.seconds) {
      useful.limit =
          fmt::format("twice as many would take {} ({})", seconds_text(twice->prediction.seconds), twice->name);
      return useful;
    }
    useful = {.ranks = 2 * useful.ranks, .seconds = twice->prediction.seconds, .strategy = twice->name, .limit = ""};
  }
  useful.limit = "more were not looked at";
  return useful;
}

}  // namespace orthant::cli
