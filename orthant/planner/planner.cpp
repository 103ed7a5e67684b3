#include "orthant/planner/planner.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/plan/fit.hpp"
#include "orthant/plan/groups.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/planner/hybrids.hpp"
#include "orthant/planner/improve.hpp"
#include "orthant/planner/shortage.hpp"
#include "orthant/planner/tables.hpp"
#include "orthant/planner/trials.hpp"

#include <algorithm>
#include <functional>
#include <future>

namespace orthant::planner {
namespace {

using base::Exit;
using base::fail;

void check(const model::Graph& graph, const PlanningOptions& options) {
  constexpr int most_ranks = 100'000;
  if (options.ranks < 1 || options.ranks > most_ranks)
    fail(Exit::usage, "{} ranks; plans are made for 1 to {}", options.ranks, most_ranks);
  if (options.memory_bytes_per_rank < 0)
    fail(Exit::usage, "{} bytes of memory; a rank needs some", options.memory_bytes_per_rank);
  if (options.micro_batches != 0) plan::check_micro_batches(graph, options.micro_batches);
}

/// Why filters or channels are not cut as a strategy says: the convolution that has fewest of them, if these are fewer
/// than parts. Nothing if all are wide enough, or the strategy cuts none.
std::string too_narrow(const model::Graph& graph, const plan::CompactGrid& grid) {
  const int parts = std::max(grid.f, grid.c);
  const bool sums = grid.c > 1;
  std::int64_t fewest = parts;
  std::string narrowest;
  for (const model::Node& node : graph.nodes) {
    if (!plan::computes(node.op) || std::holds_alternative<model::Dense>(node.op)) continue;
    const model::Node& src = graph.nodes[static_cast<std::size_t>(node.srcs.front())];
    if (sums && src.srcs.empty()) continue;  // samples have few channels, and nobody cuts them
    const std::int64_t channels = sums ? src.shape.c : node.shape.c;
    if (channels >= fewest) continue;
    fewest = channels;
    narrowest = node.name;
  }
  if (narrowest.empty()) return {};
  return fmt::format(
      "{} has {} {}, too few for {} parts; it stops at {} ranks (`train` would cut such layers in other ways)",
      narrowest, fewest, sums ? "channels" : "filters", parts, fewest * grid.n);
}

std::vector<Candidate> try_strategies(const model::Graph& graph, const PlanningOptions& options, Trials& trials) {
  std::vector<Candidate> strategies;
  for (const std::string& name : plan::strategy_names()) {
    std::string narrow;
    Candidate tried = trials.attempt(name, [&] {
      const plan::CompactGrid grid = plan::strategy_grid(graph, name, options.ranks, options.micro_batches);
      narrow = too_narrow(graph, grid);
      return plan::make_plan(graph, grid, options.micro_batches);
    });
    // What is cut in other ways where layers are narrow is a plan, but not the strategy of that name.
    const bool is_other = tried.refused.empty() && !narrow.empty();
    strategies.push_back(is_other ? Candidate{.name = name, .refused = narrow} : std::move(tried));
  }
  return strategies;
}

std::vector<plan::Plan> plans_of(const std::vector<Candidate>& candidates) {
  std::vector<plan::Plan> plans;
  for (const Candidate& one : candidates)
    if (one.refused.empty()) plans.push_back(one.plan);
  return plans;
}

/// Choices that give every rank work. A plan in which some rank has none cannot run: if no group is cut over all ranks,
/// the one for which that costs least becomes so.
std::vector<int> with_all_ranks(const Tables& tables, const Problem& problem, std::vector<int> choices, int ranks) {
  const auto parts = [&](std::size_t group, int choice) {
    return tensor::parts(tables.cuts()[group][static_cast<std::size_t>(choice)]);
  };
  for (std::size_t group = 0; group < choices.size(); ++group)
    if (parts(group, choices[group]) == ranks) return choices;
  std::optional<double> least;
  std::vector<int> best = choices;
  for (std::size_t group = 0; group < choices.size(); ++group) {
    std::vector<int> changed = choices;
    for (int choice = 0; choice < static_cast<int>(tables.cuts()[group].size()); ++choice) {
      if (parts(group, choice) != ranks) continue;
      changed[group] = choice;
      const double seconds = total(problem, changed).seconds;
      if (least && seconds >= *least) continue;
      least = seconds;
      best = changed;
    }
  }
  return best;
}

/// Searches the tables with memory for so many bytes. If the plan turns out to need more than there is, again with
/// less.
void search_tables(const Tables& tables, double exposed, int ranks, Trials& trials, Search& result) {
  Problem problem = tables.problem(exposed);
  const auto process = static_cast<double>(trials.prices().profile().process_bytes);
  const double room = trials.memory_bytes() - process;
  problem.most_bytes = room;
  for (int round = 0; round < 4; ++round) {
    const Answer answer = search(problem);
    if (!answer.exact) {
      result.exact = false;
      result.bound_seconds = std::max(result.bound_seconds, answer.cost.seconds - answer.least_seconds);
    }
    const std::vector<int> choices = with_all_ranks(tables, problem, answer.choices, ranks);
    const auto tried = trials.afford("searched", tables.plan(choices, ranks, exposed));
    if (!tried || tried->fits || !answer.fits) return;
    const double needed = static_cast<double>(tried->prediction.memory.total()) - process;
    problem.most_bytes = std::min(0.95 * answer.cost.bytes, answer.cost.bytes * 0.97 * room / needed);
  }
}

/// Quickly: one search and the hybrids that seem best, nothing more.
enum class Depth { quick, full };

/// The hybrids that seem best are tried whole.
void try_hybrids(const std::vector<Hybrid>& all, CutPrices& prices, Trials& trials) {
  constexpr std::size_t most_tries = 3;
  std::vector<std::pair<double, const Hybrid*>> order;
  for (const Hybrid& one : all) order.emplace_back(estimate(one.plan, prices), &one);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < std::min(most_tries, order.size()); ++i)
    trials.afford(order[i].second->name, order[i].second->plan);
}

void search_plans(const model::Graph& graph, const PlanningOptions& options, Depth depth, Trials& trials,
                  std::vector<plan::Plan> known, Search& result) {
  CutPrices prices(graph, trials.prices(), trials.network(), options.step.optimizer);
  const std::vector<Hybrid> mixed = hybrids(graph, options.ranks);
  for (const Hybrid& one : mixed) known.push_back(one.plan);
  std::vector<std::vector<int>> groups = plan::grid_groups(graph);
  std::vector<std::vector<tensor::Grid>> cuts = candidate_cuts(groups, options.ranks, known, prices, {});
  for (const auto& group : cuts) result.cuts += static_cast<int>(group.size());
  const Tables tables(std::move(groups), std::move(cuts), prices);
  result.exact = true;
  // How much of the gradients' sums is waited for depends on the whole plan: several guesses are followed.
  search_tables(tables, 0.5, options.ranks, trials, result);
  try_hybrids(mixed, prices, trials);
  if (depth == Depth::quick) return;
  for (const double exposed : {0.0, 1.0}) search_tables(tables, exposed, options.ranks, trials, result);
  try_pipelines(graph, options.ranks, trials);
  improve_exchanges(trials);
  improve_cuts(tables, options.ranks, trials);
}

std::string reason_of(const Planned& planned) {
  const Candidate* rival = nullptr;
  for (const Candidate& one : planned.strategies)
    if (one.fits && (!rival || is_better(one, *rival))) rival = &one;
  const std::string limit = oracle::bottleneck(planned.best.prediction);
  if (!rival) return fmt::format("no named strategy fits; most of its step: {}", limit);
  const double gain = 1 - planned.best.prediction.seconds / rival->prediction.seconds;
  if (gain <= 0) return fmt::format("{} is the fastest that was found; most of its step: {}", rival->name, limit);
  return fmt::format("{:.1f} % less time than {}, the best named strategy; most of its step: {}", 100 * gain,
                     rival->name, limit);
}

}  // namespace

Planned plan_best(const model::Graph& graph, const oracle::Profile& profile, const PlanningOptions& options) {
  check(graph, options);
  Planned planned;
  planned.serial = oracle::predict(graph, plan::serial_plan(graph), profile, options.step);
  Trials trials(graph, profile, options);
  planned.strategies = try_strategies(graph, options, trials);
  if (options.search && options.micro_batches <= 1)
    search_plans(graph, options, Depth::full, trials, plans_of(planned.strategies), planned.search);
  planned.search.predicted = trials.predicted();
  planned.best = trials.best();
  if (!trials.has_best()) return planned;
  planned.best.plan = oracle::with_kernels(graph, planned.best.plan, trials.prices(), options.step);
  if (planned.found()) {
    planned.reason = reason_of(planned);
  } else {
    planned.advice = shortage(graph, options, planned.best, trials.memory_bytes(),
                              [&](const model::Graph& other, const PlanningOptions& changed) {
                                return quick_best(other, profile, changed).fits;
                              });
  }
  return planned;
}

Candidate quick_best(const model::Graph& graph, const oracle::Profile& profile, const PlanningOptions& options) {
  check(graph, options);
  Trials trials(graph, profile, options);
  Search found;
  search_plans(graph, options, Depth::quick, trials, {}, found);
  return trials.best();
}

std::vector<WhatIf> what_ifs(const model::Graph& graph, const oracle::Profile& profile, const PlanningOptions& options,
                             const Candidate& now) {
  // The questions are independent of each other: each has a thread of its own.
  std::vector<std::future<WhatIf>> asked;
  const auto add = [&](const std::string& question, std::int64_t samples, const PlanningOptions& changed,
                       const std::function<Candidate()>& best) {
    asked.push_back(std::async(std::launch::async, [=] {
      WhatIf answer{.question = question, .options = changed, .mini_batch = samples};
      try {
        answer.best = best();
      } catch (const base::Error& error) {
        answer.best.refused = error.what();
      }
      return answer;
    }));
  };
  const std::int64_t samples = graph.nodes.front().shape.n;
  PlanningOptions half = options, twice = options;
  half.ranks /= 2;
  twice.ranks *= 2;
  if (half.ranks > 0) add("half the ranks", samples, half, [&] { return quick_best(graph, profile, half); });
  add("twice the ranks", samples, twice, [&] { return quick_best(graph, profile, twice); });
  oracle::Profile faster = profile;
  faster.between.bytes_per_second *= 2;
  add("twice the bandwidth between machines", samples, options, [&] {
    Trials trials(graph, faster, options);
    trials.attempt(now.name, [&] { return now.plan; });
    Search found;
    search_plans(graph, options, Depth::quick, trials, {}, found);
    return trials.best();
  });
  if (samples > 1)
    add("half the mini-batch", samples / 2, options,
        [&] { return quick_best(with_mini_batch(graph, samples / 2), profile, options); });
  std::vector<WhatIf> answers;
  for (std::future<WhatIf>& one : asked) answers.push_back(one.get());
  return answers;
}

model::Graph with_mini_batch(model::Graph graph, std::int64_t samples) {
  for (model::Node& node : graph.nodes) node.shape.n = samples;
  return graph;
}

}  // namespace orthant::planner
