#include "orthant/engine/choose_kernels.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/alone.hpp"
#include "orthant/engine/engine.hpp"
#include "orthant/kernels/conv.hpp"
#include "orthant/plan/strategy.hpp"
#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

namespace orthant::test {
namespace {

using model::Algorithm;
using model::Pass;

/// Three taps, which all algorithms can run in some pass, one tap, which Winograd cannot, and a transposed convolution.
model::Graph three_convolutions(std::int64_t depth = 8) {
  const tensor::Window three{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  const tensor::Window twice{.size = tensor::cube(2), .stride = tensor::cube(2)};
  model::GraphBuilder builder("three", 3, {.n = 2, .c = 16, .d = depth, .h = 8, .w = 8});
  builder.add("taps3", model::Conv{.filters = 16, .window = three});
  builder.add("taps1", model::Conv{.filters = 16});
  builder.add("up", model::ConvTranspose{.filters = 16, .window = twice});
  return builder.finish({.terms = {{}}});
}

plan::KernelChoices& kernels_of(plan::Plan& plan, const std::string& node) {
  return std::find_if(plan.nodes.begin(), plan.nodes.end(), [&](const auto& entry) { return entry.node == node; })
      ->kernels;
}

plan::Plan choose(const model::Graph& graph, const plan::Plan& plan, const engine::ChooseOptions& options) {
  comm::Alone alone;
  return engine::choose_kernels(graph, plan, {}, alone, options);
}

std::string message_of(const model::Graph& graph, const plan::Plan& plan) {
  try {
    choose(graph, plan, {});
  } catch (const base::Error& error) {
    EXPECT_EQ(error.code(), base::Exit::does_not_fit);
    return error.what();
  }
  return "no error";
}

TEST(ChooseKernels, WhatIsLeftOpenGetsTheRulesAlgorithm) {
  const model::Graph graph = three_convolutions();
  const schedule::Schedule open = schedule::lower(graph, plan::serial_plan(graph), 0, {});
  const schedule::Schedule chosen = schedule::lower(graph, choose(graph, plan::serial_plan(graph), {}), 0, {});
  int convolutions = 0;
  for (std::size_t i = 0; i < open.steps.size(); ++i) {
    const auto* task = std::get_if<model::Task>(&open.steps[i].work);
    const auto* conv = task ? std::get_if<model::ConvTask>(task) : nullptr;
    if (!conv) continue;
    ++convolutions;
    EXPECT_EQ(std::get<model::ConvTask>(std::get<model::Task>(chosen.steps[i].work)).algorithm,
              kernels::conv_candidates(*conv, 1).front().algorithm)
        << open.steps[i].name;
  }
  EXPECT_EQ(convolutions, 8);  // the first needs no gradient of its source
}

TEST(ChooseKernels, ChoicesAreByThePassOfTheTask) {
  const model::Graph graph = three_convolutions();
  plan::Plan plan = plan::serial_plan(graph);
  kernels_of(plan, "up").backward_data.algorithm = Algorithm::direct;
  kernels_of(plan, "up").forward.algorithm = Algorithm::matrix;
  const schedule::Schedule schedule = schedule::lower(graph, choose(graph, plan, {}), 0, {});
  std::set<std::string> seen;
  for (const schedule::Step& step : schedule.steps) {
    const auto* task = std::get_if<model::Task>(&step.work);
    const auto* conv = task ? std::get_if<model::ConvTask>(task) : nullptr;
    if (!conv || graph.nodes[static_cast<std::size_t>(step.node)].name != "up") continue;
    seen.insert(step.name);
    if (step.phase == schedule::Phase::forward) {
      EXPECT_EQ(conv->algorithm, Algorithm::direct);
    } else if (conv->pass == Pass::forward) {
      EXPECT_EQ(conv->algorithm, Algorithm::matrix);
    }
  }
  EXPECT_EQ(seen.size(), 3U);
}

TEST(ChooseKernels, APlanThatCannotBeFollowedIsRefused) {
  const model::Graph graph = three_convolutions();
  for (const Pass pass : model::all_passes) {
    plan::Plan plan = plan::serial_plan(graph);
    kernels_of(plan, "taps1")[pass].algorithm = Algorithm::winograd;
    const std::string message = message_of(graph, plan);
    const std::string begin = std::string("plan: taps1 ") + model::name_of(pass) +
                              " asks for winograd, which cannot run this convolution on this machine; use ";
    EXPECT_EQ(message.rfind(begin, 0), 0U) << message;

    comm::Alone alone;
    EXPECT_THROW(engine::Engine(schedule::lower(graph, plan, 0, {}), alone, {}), base::Error)
        << "an engine replaces what the plan says";
  }
  plan::Plan plan = plan::serial_plan(graph);
  kernels_of(plan, "taps3").forward.algorithm = Algorithm::winograd;
  EXPECT_EQ(message_of(graph, plan), "no error");
}

TEST(ChooseKernels, AllRanksRefuseWhatOneCannotFollow) {
  // Only the second stage has the convolution.
  const model::Graph graph = three_convolutions();
  plan::Plan plan = plan::make_plan(graph, plan::parse_grid("p2"));
  kernels_of(plan, "up").backward_data.algorithm = Algorithm::winograd;
  std::mutex mutex;
  std::vector<std::string> messages;
  run_threads(2, [&](comm::Comm& comm) {
    try {
      engine::choose_kernels(graph, plan, {}, comm, {});
    } catch (const comm::CollectiveError& error) {
      const std::lock_guard lock(mutex);
      messages.emplace_back(error.what());
    }
  });
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_NE(messages[0].find("plan: up backward_data asks for winograd"), std::string::npos) << messages[0];
}

TEST(ChooseKernels, APreferredAlgorithmIsTakenWhereItCanRun) {
  const model::Graph graph = three_convolutions();
  plan::Plan plan = plan::serial_plan(graph);
  plan::Plan rule = choose(graph, plan, {});
  kernels_of(plan, "taps3").forward.algorithm = Algorithm::direct;
  plan::Plan preferred = choose(graph, plan, {.preferred = Algorithm::winograd, .measure = true});
  EXPECT_EQ(kernels_of(preferred, "taps3").forward.algorithm, Algorithm::winograd);
  EXPECT_EQ(kernels_of(preferred, "taps3").backward_weights.algorithm, Algorithm::winograd);
  EXPECT_EQ(kernels_of(preferred, "taps1"), kernels_of(rule, "taps1"));
}

/// Times by the cells of a task: the larger tasks are fastest with one algorithm, the others with another.
engine::ChooseOptions by_depth(std::int64_t depth, Algorithm at_depth, Algorithm elsewhere) {
  return {.measure = true,
          .now = [] { return 0.0; },
          .seconds =
              [=](const model::ConvTask& task, Algorithm one, const std::function<void()>&) {
                const Algorithm best = task.dst.extents.d == depth ? at_depth : elsewhere;
                return one == best ? 0.01 : 0.02;
              }};
}

TEST(ChooseKernels, TheTaskWithTheMostWorkDecidesForUnevenBlocks) {
  const model::Graph graph = three_convolutions(7);
  const plan::Plan plan = plan::make_plan(graph, plan::parse_grid("d2"));
  for (const auto& [large, small] :
       {std::pair{Algorithm::direct, Algorithm::winograd}, std::pair{Algorithm::winograd, Algorithm::direct}}) {
    std::mutex mutex;
    std::vector<plan::Plan> plans;
    run_threads(2, [&](comm::Comm& comm) {
      plan::Plan chosen = engine::choose_kernels(graph, plan, {}, comm, by_depth(4, large, small));
      const std::lock_guard lock(mutex);
      plans.push_back(std::move(chosen));
    });
    EXPECT_EQ(plans[0], plans[1]);
    EXPECT_EQ(kernels_of(plans[0], "taps3").forward.algorithm, large);
    EXPECT_EQ(kernels_of(plans[0], "taps3").forward.seconds, 0.01);
  }
}

}  // namespace
}  // namespace orthant::test
