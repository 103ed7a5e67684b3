#include "orthant/cli/plan_remedies.hpp"

#include "orthant/base/format.hpp"
#include "orthant/cli/units.hpp"

#include <algorithm>
#include <optional>

namespace orthant::cli {
namespace {

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
  const auto other = planner::cut_otherwise(question.graph, question.profile, question.options, candidate.plan, node);
  if (!other) return what + "; it cannot be cut otherwise by moving a factor two";
  const auto grid = [&](const plan::Plan& plan) {
    return tensor::to_text(plan.nodes[static_cast<std::size_t>(node)].grid);
  };
  const std::string cuts = fmt::format("{} instead of {}", grid(other->plan), grid(candidate.plan));
  const double change = other->prediction.seconds / prediction.seconds - 1;
  if (change > -0.005)
    return fmt::format("{}; the nearest other cut, {}, would not help ({:+.1f} %)", what, cuts, 100 * change);
  return fmt::format(
      "{}; {}: {:+.1f} % time, {:+.1f} % memory", what, cuts, 100 * change,
      100 *
          (static_cast<double>(other->prediction.memory.total()) / static_cast<double>(prediction.memory.total()) - 1));
}

/// By a short search.
planner::Candidate best_for(const Question& question, int ranks) {
  planner::PlanningOptions options = question.options;
  options.ranks = ranks;
  return planner::quick_best(question.graph, question.profile, options);
}

}  // namespace

std::vector<std::string> remedies(const Question& question, const planner::Candidate& candidate) {
  std::vector<std::string> lines;
  for (const oracle::LayerTime& layer : heaviest(candidate.prediction))
    lines.push_back(remedy(question, candidate, layer));
  return lines;
}

UsefulRanks useful_ranks(const Question& question, const planner::Planned& planned,
                         const std::vector<planner::WhatIf>& what_ifs) {
  constexpr double worth_it = 0.9;
  constexpr int most = 4096, most_doublings = 4;
  const planner::Candidate& best = planned.best;
  const int asked = question.options.ranks;
  UsefulRanks useful{.ranks = asked, .seconds = best.prediction.seconds, .strategy = best.name, .limit = ""};
  const auto is_worth_it = [](double more, double fewer) { return more <= worth_it * fewer; };
  const auto known = [&](int ranks) {
    const auto found = std::find_if(what_ifs.begin(), what_ifs.end(), [&](const planner::WhatIf& one) {
      return one.options.ranks == ranks && ranks != asked;
    });
    return found == what_ifs.end() ? nullptr : &found->best;
  };
  const std::string waste =
      fmt::format("{} take {} ({})", with_commas(asked), seconds_text(best.prediction.seconds), best.name);
  if (asked > 1 && planned.serial && planned.serial->fits && !is_worth_it(useful.seconds, planned.serial->seconds))
    return {.ranks = 1, .seconds = planned.serial->seconds, .strategy = "nothing cut", .limit = waste};
  const planner::Candidate* half = known(asked / 2);
  if (half && half->fits && !is_worth_it(useful.seconds, half->prediction.seconds))
    return {.ranks = asked / 2,
            .seconds = half->prediction.seconds,
            .strategy = half->name,
            .limit = waste + "; fewer were not looked at"};
  for (int i = 0; i < most_doublings; ++i) {
    const int doubled = 2 * useful.ranks;
    if (!known(doubled) && doubled > most) break;
    const planner::Candidate twice = known(doubled) ? *known(doubled) : best_for(question, doubled);
    if (!twice.fits) {
      useful.limit = "no plan for twice as many was found";
      return useful;
    }
    if (!is_worth_it(twice.prediction.seconds, useful.seconds)) {
      useful.limit =
          fmt::format("twice as many would take {} ({})", seconds_text(twice.prediction.seconds), twice.name);
      return useful;
    }
    useful = {.ranks = doubled, .seconds = twice.prediction.seconds, .strategy = twice.name, .limit = ""};
  }
  useful.limit = "more were not looked at";
  return useful;
}

}  // namespace orthant::cli
