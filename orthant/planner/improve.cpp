#include "orthant/planner/improve.hpp"

#include "orthant/base/error.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/plan/stages.hpp"
#include "orthant/plan/strategy.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace orthant::planner {
namespace {

/// About the share of the gradients' sums that is waited for.
constexpr double usual_exposure = 0.5;

bool has_batch_statistics(const model::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const model::Node& node) { return model::traits_of(node.op).batch_statistics; });
}

/// The groups, those whose nodes wait longest first.
std::vector<int> groups_by_waiting(const Tables& tables, const Candidate& best) {
  std::map<std::string, double> waiting;
  for (const oracle::LayerTime& layer : best.prediction.layers) waiting[layer.name] += layer.waiting_seconds;
  std::vector<double> seconds;
  for (const std::vector<int>& group : tables.groups()) {
    double sum = 0;
    for (const int node : group) sum += waiting[best.plan.nodes[static_cast<std::size_t>(node)].node];
    seconds.push_back(sum);
  }
  std::vector<int> order(seconds.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return seconds[static_cast<std::size_t>(a)] > seconds[static_cast<std::size_t>(b)];
  });
  return order;
}

/// Other choices for a group, the cheapest by the tables first.
std::vector<int> alternatives(const Problem& problem, std::vector<int> choices, int group) {
  const auto place = static_cast<std::size_t>(group);
  const int now = choices[place];
  std::vector<std::pair<double, int>> others;
  for (int choice = 0; choice < static_cast<int>(problem.variables[place].size()); ++choice) {
    choices[place] = choice;
    if (choice != now) others.emplace_back(total(problem, choices).seconds, choice);
  }
  std::sort(others.begin(), others.end());
  std::vector<int> order;
  for (const auto& [seconds, choice] : others) order.push_back(choice);
  return order;
}

}  // namespace

void try_pipelines(const model::Graph& graph, int ranks, Trials& trials) {
  constexpr int most_tries = 4;
  if (has_batch_statistics(graph)) return;
  const int most = std::min(plan::most_stages(graph), ranks);
  int tries = 0;
  for (int stages = 2; stages <= most && tries < most_tries; ++stages) {
    if (ranks % stages != 0) continue;
    const plan::CompactGrid grid{.n = ranks / stages, .p = stages};
    if (grid.n > graph.nodes.front().shape.n) continue;
    const int pieces = plan::pipeline_pieces(graph, stages, grid.n);
    for (const int count : {pieces, 2 * pieces}) {
      try {
        const plan::Plan plan = plan::make_plan(graph, grid, count);
        if (trials.afford(plan::to_text(grid), plan)) ++tries;
      } catch (const base::Error&) {
        break;  // it cannot be cut like that
      }
    }
  }
}

void improve_cuts(const Tables& tables, int ranks, Trials& trials) {
  constexpr std::size_t alternatives_tried = 3;
  if (!trials.has_best()) return;
  const Problem problem = tables.problem(usual_exposure);
  std::set<std::vector<int>> seen;
  for (bool better = true; better;) {
    better = false;
    const std::optional<std::vector<int>> now = tables.choices_of(trials.best().plan);
    if (!now) return;
    for (const int group : groups_by_waiting(tables, trials.best())) {
      const std::vector<int> others = alternatives(problem, *now, group);
      for (std::size_t i = 0; i < std::min(alternatives_tried, others.size()) && !better; ++i) {
        std::vector<int> choices = *now;
        choices[static_cast<std::size_t>(group)] = others[i];
        if (!seen.insert(choices).second) continue;
        const Candidate before = trials.best();
        const plan::Plan other = tables.plan(choices, ranks, usual_exposure);
        plan::Plan changed = before.plan;
        for (const int node : tables.groups()[static_cast<std::size_t>(group)])
          changed.nodes[static_cast<std::size_t>(node)] = other.nodes[static_cast<std::size_t>(node)];
        const auto tried = trials.afford("searched", changed);
        better = tried && is_better(*tried, before);
      }
      if (better) break;
    }
  }
}

void improve_exchanges(Trials& trials) {
  if (!trials.has_best() || trials.best().plan.ranks == 1) return;
  constexpr int longest_ring = 64;
  const auto change = [&](const auto& edit) {
    plan::Plan changed = trials.best().plan;
    edit(changed.exchanges);
    trials.afford(trials.best().name, changed);
  };
  for (const int direct : {1, 8}) {
    change(
        [&](plan::ExchangeForms& forms) { forms.buckets = {.form = plan::Form::recursive, .direct_up_to = direct}; });
    if (trials.best().plan.ranks > longest_ring) continue;
    change([&](plan::ExchangeForms& forms) { forms.buckets = {.form = plan::Form::ring, .direct_up_to = direct}; });
  }
  for (const int direct : {2, 32}) {
    change([&](plan::ExchangeForms& forms) { forms.sums.direct_up_to = direct; });
    change([&](plan::ExchangeForms& forms) { forms.gathers.direct_up_to = direct; });
  }
  change([](plan::ExchangeForms& forms) { forms.sums.form = plan::Form::tree; });
  change([](plan::ExchangeForms& forms) { forms.two_levels = false; });
}

}  // namespace orthant::planner
