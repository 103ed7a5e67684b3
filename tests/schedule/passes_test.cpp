#include "orthant/schedule/passes.hpp"
#include "tests/support/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace orthant::schedule {
namespace {

using Passes = std::vector<StagePass>;

/// One node per stage, on `count` ranks from `first_rank` on.
struct StageOn {
  int stage = 0, first_rank = 0, count = 1;
};

plan::Plan plan_of(const std::vector<StageOn>& stages, int ranks, int micro_batches) {
  plan::Plan plan{.ranks = ranks, .micro_batches = micro_batches, .nodes = {}};
  for (const StageOn& stage : stages)
    plan.nodes.push_back(
        {.node = "node", .grid = {.h = stage.count}, .first_rank = stage.first_rank, .stage = stage.stage});
  return plan;
}

/// "F0 F1 B0 ...", of stage s as "F0.s" where the rank has several.
std::string text(const Passes& passes, bool stages = false) {
  std::string words;
  for (const StagePass& pass : passes) {
    words += (words.empty() ? "" : " ") + std::string(pass.phase == Phase::forward ? "F" : "B");
    words += std::to_string(pass.micro_batch);
    if (stages) words += "." + std::to_string(pass.first_stage);
  }
  return words;
}

/// PipeDream's order: as many micro-batches ahead as there are stages from this one on, then one forward, one backward.
std::string one_forward_one_backward(int stages, int stage, int micro_batches) {
  Passes passes;
  const int ahead = std::min(stages - 1 - stage, micro_batches);
  for (int i = 0; i < micro_batches + ahead; ++i) {
    if (i < micro_batches) passes.push_back({.phase = Phase::forward, .micro_batch = i});
    if (i >= ahead) passes.push_back({.phase = Phase::backward, .micro_batch = i - ahead});
  }
  return text(passes);
}

TEST(Passes, StagesOnRanksOfTheirOwnRunOneForwardOneBackward) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int micro_batches = 1; micro_batches <= 9; ++micro_batches) {
      std::vector<StageOn> list;
      for (int stage = 0; stage < stages; ++stage)
        list.push_back({.stage = stage, .first_rank = 2 * stage, .count = 2});
      const plan::Plan plan = plan_of(list, 2 * stages, micro_batches);
      for (int rank = 0; rank < 2 * stages; ++rank) {
        EXPECT_EQ(text(passes_of(plan, rank, Mode::train)), one_forward_one_backward(stages, rank / 2, micro_batches))
            << rank << " of " << stages << " stages";
      }
    }
  }
}

TEST(Passes, EvaluationGoesForwardOnly) {
  const plan::Plan plan = plan_of({{0, 0}, {1, 1}}, 2, 3);
  EXPECT_EQ(text(passes_of(plan, 0, Mode::evaluate)), "F0 F1 F2");
  EXPECT_EQ(text(passes_of(plan, 1, Mode::evaluate)), "F0 F1 F2");
}

TEST(Passes, ARankWithTwoStagesInterleavesThem) {
  const plan::Plan plan = plan_of({{0, 0}, {1, 1}, {2, 0}, {3, 1}}, 2, 2);
  EXPECT_EQ(text(passes_of(plan, 0, Mode::train), true), "F0.0 F1.0 F0.2 F1.2 B0.2 B1.2 B0.0 B1.0");
  EXPECT_EQ(text(passes_of(plan, 1, Mode::train), true), "F0.0 F1.0 F0.3 B0.3 F1.3 B1.3 B0.0 B1.0");
}

TEST(Passes, CoverTheStagesUpToTheNextOfTheRank) {
  const plan::Plan plan = plan_of({{0, 0}, {3, 1}, {7, 0}, {9, 1}}, 2, 1);
  const Passes expected{{.phase = Phase::forward, .first_stage = 0, .end_stage = 7},
                        {.phase = Phase::forward, .first_stage = 7, .end_stage = 10},
                        {.phase = Phase::backward, .first_stage = 7, .end_stage = 10},
                        {.phase = Phase::backward, .first_stage = 0, .end_stage = 7}};
  EXPECT_EQ(passes_of(plan, 0, Mode::train), expected);
}

/// Ranks and stages at random: each stage once per micro-batch and phase, forward before backward, sources before
/// readers, and any two ranks meet the stages that they share in the same order.
TEST(Passes, RanksAgreeOnTheOrderOfWhatTheyShare) {
  test::Random random(1);
  const auto pick = [&](int lo, int hi) { return static_cast<int>(random.integer(lo, hi)); };
  for (int trial = 0; trial < 300; ++trial) {
    const int ranks = pick(1, 5);
    std::vector<StageOn> list;
    const int nodes = pick(1, 7);
    for (int node = 0; node < nodes; ++node) {
      const int first = pick(0, ranks - 1);
      list.push_back({.stage = node / pick(1, 2), .first_rank = first, .count = pick(1, ranks - first)});
    }
    list.push_back({.stage = list.back().stage, .first_rank = 0, .count = ranks});
    const plan::Plan plan = plan_of(list, ranks, pick(1, 4));
    const int stages = 1 + std::max_element(list.begin(), list.end(), [](const auto& a, const auto& b) {
                             return a.stage < b.stage;
                           })->stage;
    const auto takes_part = [&](int rank, int stage) {
      return std::any_of(list.begin(), list.end(), [&](const StageOn& on) {
        return on.stage == stage && rank >= on.first_rank && rank < on.first_rank + on.count;
      });
    };
    using Key = std::tuple<Phase, int, int>;
    std::vector<std::map<Key, std::size_t>> place(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      auto& own = place[static_cast<std::size_t>(rank)];
      for (const StagePass& pass : passes_of(plan, rank, Mode::train)) {
        for (int stage = pass.first_stage; stage < pass.end_stage; ++stage)
          EXPECT_TRUE(own.emplace(Key{pass.phase, pass.micro_batch, stage}, own.size()).second);
      }
      EXPECT_EQ(own.size(), static_cast<std::size_t>(2 * stages * plan.micro_batches));
      for (int micro = 0; micro < plan.micro_batches; ++micro) {
        for (int stage = 0; stage < stages; ++stage) {
          EXPECT_LT(own.at({Phase::forward, micro, stage}), own.at({Phase::backward, micro, stage}));
          if (stage > 0) {
            EXPECT_LT(own.at({Phase::forward, micro, stage - 1}), own.at({Phase::forward, micro, stage}));
          }
        }
      }
    }
    for (int a = 0; a < ranks; ++a) {
      for (int b = 0; b < a; ++b) {
        std::vector<std::pair<std::size_t, std::size_t>> shared;
        for (const auto& [key, at] : place[static_cast<std::size_t>(a)]) {
          if (takes_part(a, std::get<2>(key)) && takes_part(b, std::get<2>(key)))
            shared.emplace_back(at, place[static_cast<std::size_t>(b)].at(key));
        }
        std::sort(shared.begin(), shared.end());
        EXPECT_TRUE(std::is_sorted(shared.begin(), shared.end(),
                                   [](const auto& x, const auto& y) { return x.second < y.second; }));
      }
    }
  }
}

}  // namespace
}  // namespace orthant::schedule
