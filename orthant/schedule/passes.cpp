#include "orthant/schedule/passes.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace orthant::schedule {
namespace {

/// One stage of one micro-batch.
struct SinglePass {
  Phase phase = Phase::forward;
  int micro_batch = 0;
  int stage = 0;
};

/// A stage's number in the plan and the ranks that take part in it, as ranges.
struct StageRanks {
  int number = 0;
  std::vector<tensor::Range> ranks;
};

/// The stages that the plan uses, in order.
std::vector<StageRanks> stages_of(const plan::Plan& plan) {
  std::map<int, std::vector<tensor::Range>> found;
  for (const plan::NodePlan& node : plan.nodes) {
    const tensor::Range range{node.first_rank, node.first_rank + tensor::parts(node.grid)};
    std::vector<tensor::Range>& ranks = found[node.stage];
    if (std::find(ranks.begin(), ranks.end(), range) == ranks.end()) ranks.push_back(range);
  }
  std::vector<StageRanks> stages;
  for (auto& [number, ranks] : found) stages.push_back({.number = number, .ranks = std::move(ranks)});
  return stages;
}

bool have_common_ranks(const StageRanks& a, const StageRanks& b) {
  return std::any_of(a.ranks.begin(), a.ranks.end(), [&](const tensor::Range& one) {
    return std::any_of(b.ranks.begin(), b.ranks.end(),
                       [&](const tensor::Range& other) { return one.lo < other.hi && other.lo < one.hi; });
  });
}

/// A clock that runs the pipeline to find the order of its passes. Every stage starts what it can as soon as its ranks
/// are free: backward before forward, and the later stage first, because both free memory.
class Clock {
 public:
  Clock(const std::vector<StageRanks>& stages, int micro_batches, Mode mode)
      : stages_(stages.size()), micro_batches_(micro_batches), mode_(mode) {
    for (std::size_t i = 0; i < stages.size(); ++i) {
      for (const StageRanks& other : stages) stages_[i].conflicts.push_back(have_common_ranks(stages[i], other));
    }
  }

  std::vector<SinglePass> run() {
    while (!is_complete()) {
      while (start_backward() || start_forward()) {
      }
      tick();
    }
    return std::move(order_);
  }

 private:
  struct Stage {
    std::vector<bool> conflicts;                ///< per stage: has ranks in common with this one
    int forwards = 0, backwards = 0;            ///< passes that were started
    int forwards_done = 0, backwards_done = 0;  ///< and those that have ended
    int remaining = 0;                          ///< ticks until the running pass ends
  };

  // Backward computes the gradients of data and of weights.
  static constexpr int forward_ticks = 1, backward_ticks = 2;

  [[nodiscard]] bool trains() const { return mode_ == Mode::train; }

  [[nodiscard]] bool is_complete() const {
    return std::all_of(stages_.begin(), stages_.end(), [&](const Stage& stage) {
      return stage.forwards_done == micro_batches_ && (!trains() || stage.backwards_done == micro_batches_);
    });
  }

  /// True if no rank of the stage is busy.
  [[nodiscard]] bool is_free(const Stage& stage) const {
    for (std::size_t other = 0; other < stages_.size(); ++other) {
      if (stages_[other].remaining > 0 && stage.conflicts[other]) return false;
    }
    return true;
  }

  /// Starts the backward pass of the earliest micro-batch that has one to start.
  bool start_backward() {
    if (!trains()) return false;
    Stage* best = nullptr;
    for (std::size_t s = stages_.size(); s-- > 0;) {
      Stage& stage = stages_[s];
      const int arrived = s + 1 < stages_.size() ? stages_[s + 1].backwards_done : stage.forwards_done;
      if (stage.backwards >= arrived || !is_free(stage)) continue;
      if (!best || stage.backwards < best->backwards) best = &stage;
    }
    if (!best) return false;
    start(*best, {.phase = Phase::backward, .micro_batch = best->backwards++}, backward_ticks);
    return true;
  }

  /// In training a stage is at most as many micro-batches ahead of backward as there are stages from it on.
  bool start_forward() {
    for (std::size_t s = stages_.size(); s-- > 0;) {
      Stage& stage = stages_[s];
      const int arrived = s > 0 ? stages_[s - 1].forwards_done : micro_batches_;
      const int most = trains() ? stage.backwards_done + static_cast<int>(stages_.size() - s) : micro_batches_;
      if (stage.forwards >= std::min(arrived, most) || !is_free(stage)) continue;
      start(stage, {.phase = Phase::forward, .micro_batch = stage.forwards++}, forward_ticks);
      return true;
    }
    return false;
  }

  void start(Stage& stage, SinglePass pass, int ticks) {
    pass.stage = static_cast<int>(&stage - stages_.data());
    stage.remaining = ticks;
    order_.push_back(pass);
  }

  void tick() {
    for (Stage& stage : stages_) {
      if (stage.remaining == 0 || --stage.remaining > 0) continue;
      const bool forward = stage.forwards_done < stage.forwards;  // a stage runs one pass at a time
      ++(forward ? stage.forwards_done : stage.backwards_done);
    }
  }

  std::vector<Stage> stages_;
  int micro_batches_;
  Mode mode_;
  std::vector<SinglePass> order_;
};

}  // namespace

std::vector<StagePass> passes_of(const plan::Plan& plan, int rank, Mode mode) {
  const std::vector<StageRanks> stages = stages_of(plan);
  std::vector<int> own;  // indices of the rank's stages
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (have_common_ranks(stages[i], {.ranks = {{rank, rank + 1}}})) own.push_back(static_cast<int>(i));
  }
  std::vector<StagePass> passes;
  for (const SinglePass& pass : Clock(stages, plan.micro_batches, mode).run()) {
    const auto found = std::find(own.begin(), own.end(), pass.stage);
    if (found == own.end()) continue;
    const auto number = [&](auto at) { return stages[static_cast<std::size_t>(*at)].number; };
    passes.push_back({.phase = pass.phase,
                      .micro_batch = pass.micro_batch,
                      .first_stage = found == own.begin() ? 0 : number(found),
                      .end_stage = found + 1 == own.end() ? stages.back().number + 1 : number(found + 1)});
  }
  return passes;
}

}  // namespace orthant::schedule
