#pragma once

#include "orthant/oracle/predict.hpp"

#include <optional>
#include <string>
#include <vector>

namespace orthant::planner {

struct PlanningOptions {
  int ranks = 1;
  std::int64_t memory_bytes_per_rank = 0;  ///< 0: what the profile's machines have
  int micro_batches = 0;                   ///< 0: what suits each plan
  oracle::StepOptions step{};
  bool search = true;  ///< false: only the named strategies are compared
};

/// A plan with what it would take, or why it cannot run.
struct Candidate {
  std::string name;                 ///< "data", "n4d2", "searched"
  plan::Plan plan{};                ///< with kernels, as it was predicted
  oracle::Prediction prediction{};  ///< of the plan; nothing in it if `refused` says something
  bool fits = false;                ///< it can run, and in the memory that there is
  std::string refused{};            ///< why there is no such plan; empty if there is one
};

/// How the best plan was found.
struct Search {
  bool exact = false;        ///< no plan of the candidates' cuts has less time by the tables
  double bound_seconds = 0;  ///< otherwise: such a plan is better by no more than this, by the tables
  int cuts = 0;              ///< candidates of all layers together
  int predicted = 0;         ///< plans that were lowered and timed whole
};

struct Planned {
  std::vector<Candidate> strategies;           ///< in the order of plan::strategy_names()
  std::optional<oracle::Prediction> serial{};  ///< of one rank, whatever memory it has; speed-ups refer to it
  Candidate best{};                            ///< the fastest that fits; never slower than a strategy that fits
  Search search{};
  std::string reason{};  ///< why the best is the best, in one line
  std::string advice{};  ///< if nothing fits: what is short by how much and the nearest that would fit
  [[nodiscard]] bool found() const { return best.fits; }
};

/// Compares the named strategies and searches for the best plan, layer by layer. The same question has the same answer.
/// If nothing fits, `best` is what needs least memory. Throws Error for ranks or micro-batches that cannot be.
Planned plan_best(const model::Graph& graph, const oracle::Profile& profile, const PlanningOptions& options);

/// The best plan of a short search, for questions beside the main one. Its `refused` says if there is none.
Candidate quick_best(const model::Graph& graph, const oracle::Profile& profile, const PlanningOptions& options);

/// What would be if something were different, each question with the best plan there.
struct WhatIf {
  std::string question;  ///< "twice the ranks"
  PlanningOptions options{};
  std::int64_t mini_batch = 0;
  Candidate best{};
};

/// Half and twice the ranks, twice the bandwidth between machines, half the mini-batch, by short searches. Where that
/// cannot be, the candidate is refused. `now` is the best plan as things are.
std::vector<WhatIf> what_ifs(const model::Graph& graph, const oracle::Profile& profile, const PlanningOptions& options,
                             const Candidate& now);

/// The same plan with the group of one node cut in another way, by a factor two that goes from one dim to another; of
/// all such plans the one that seems best. Nothing if there is none.
std::optional<Candidate> cut_otherwise(const model::Graph& graph, const oracle::Profile& profile,
                                       const PlanningOptions& options, const plan::Plan& plan, int node);

/// The same network for another mini-batch.
model::Graph with_mini_batch(model::Graph graph, std::int64_t samples);

}  // namespace orthant::planner
