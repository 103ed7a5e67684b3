#include "orthant/engine/choose.hpp"

#include "orthant/base/json.hpp"
#include "orthant/comm/alone.hpp"
#include "orthant/engine/choose_kernels.hpp"
#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/task_key.hpp"
#include "orthant/model/network.hpp"
#include "orthant/plan/strategy.hpp"
#include "tests/data/temporary.hpp"
#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>

#include <fstream>
#include <mutex>
#include <set>
#include <thread>

namespace orthant::test {
namespace {

using engine::Choices;
using model::Algorithm;

model::Graph small_network() { return model::load_network("cosmoflow", {.input = "4x16x16x16", .mini_batch = 2}); }

/// A choice per convolution and pass of the plan; those that no schedule has are left out.
std::vector<plan::KernelChoice> choices_of(const plan::Plan& plan) {
  std::vector<plan::KernelChoice> found;
  for (const plan::NodePlan& node : plan.nodes) {
    for (const model::Pass pass : model::all_passes) {
      if (node.kernels[pass].algorithm != Algorithm::automatic) found.push_back(node.kernels[pass]);
    }
  }
  return found;
}

std::vector<Algorithm> algorithms(const schedule::Schedule& schedule) {
  std::vector<Algorithm> found;
  for (const schedule::Step& step : schedule.steps) {
    const auto* task = std::get_if<model::Task>(&step.work);
    if (const auto* conv = task ? std::get_if<model::ConvTask>(task) : nullptr) found.push_back(conv->algorithm);
  }
  return found;
}

/// What a test looks at: the plan with its choices, this rank's schedule under it, and what was measured.
struct Chosen {
  plan::Plan plan;
  schedule::Schedule schedule;
  engine::Measured measured;
};

/// Collective.
Chosen choose(const model::Graph& graph, const plan::Plan& plan, comm::Comm& comm, engine::ChooseOptions options) {
  Chosen chosen;
  options.measure = true;
  options.finished = [&](const engine::Measured& measured) { chosen.measured = measured; };
  chosen.plan = engine::choose_kernels(graph, plan, {}, comm, options);
  chosen.schedule = schedule::lower(graph, chosen.plan, comm.rank(), {});
  return chosen;
}

Chosen choose(const model::Graph& graph, const engine::ChooseOptions& options) {
  comm::Alone alone;
  return choose(graph, plan::serial_plan(graph), alone, options);
}

/// Real kernels on a busy machine may take any time.
constexpr engine::MeasuringLimits all_the_time{.least_seconds = 1e9};

/// A clock that stands still but for runs, which take what they are said to.
struct ScriptedTime {
  std::function<double(const model::ConvTask&, Algorithm)> seconds_of;
  double now = 0;
  std::vector<std::pair<model::ConvTask, Algorithm>> runs{};

  [[nodiscard]] engine::ChooseOptions options() {
    return {.now = [this] { return now; },
            .seconds =
                [this](const model::ConvTask& task, Algorithm algorithm, const std::function<void()>&) {
                  const double seconds = seconds_of(task, algorithm);
                  now += seconds;
                  runs.emplace_back(task, algorithm);
                  return seconds;
                }};
  }
};

TEST(Choose, EveryConvolutionGetsAnAlgorithm) {
  const Chosen chosen = choose(small_network(), {.limits = all_the_time});
  EXPECT_GT(chosen.measured.tasks, 0);
  EXPECT_EQ(chosen.measured.left_tasks, 0);
  for (const Algorithm algorithm : algorithms(chosen.schedule)) EXPECT_NE(algorithm, Algorithm::automatic);
  for (const plan::KernelChoice& choice : choices_of(chosen.plan)) EXPECT_GT(choice.seconds, 0);
}

TEST(Choose, TakesTheFastest) {
  ScriptedTime time{[](const model::ConvTask&, Algorithm one) { return one == Algorithm::direct ? 0.01 : 0.015; }};
  const Chosen chosen = choose(small_network(), time.options());
  EXPECT_FALSE(algorithms(chosen.schedule).empty());
  for (const Algorithm algorithm : algorithms(chosen.schedule)) EXPECT_EQ(algorithm, Algorithm::direct);
  for (const plan::KernelChoice& choice : choices_of(chosen.plan)) EXPECT_EQ(choice.seconds, 0.01);
}

TEST(Choose, MeasuresTheMostExpensiveFirstAndTheRuleBeforeOthers) {
  ScriptedTime time{[](const model::ConvTask&, Algorithm) { return 0.01; }};
  choose(small_network(), time.options());
  std::string last;
  std::int64_t flops = std::int64_t{1} << 62;
  for (const auto& [task, algorithm] : time.runs) {
    if (const std::string key = kernels::task_key(task, 1); key != last) {
      last = key;
      EXPECT_EQ(algorithm, kernels::conv_candidates(task, 1).front().algorithm) << key;
      EXPECT_LE(model::flops(task), flops) << key;
      flops = model::flops(task);
    }
  }
  EXPECT_FALSE(last.empty());
}

TEST(Choose, StopsWhenTheTimeIsUpAndGoesOnInTheNextRun) {
  const TemporaryDirectory folder;
  const model::Graph graph = small_network();
  int left = 1;
  for (int run = 0; left > 0 && run < 20; ++run) {
    ScriptedTime time{[](const model::ConvTask&, Algorithm) { return 1.0; }};
    engine::ChooseOptions options = time.options();
    options.cache_path = folder.file("kernels.json");
    const Chosen chosen = choose(graph, options);
    const engine::Measured& measured = chosen.measured;
    EXPECT_LE(time.now, 20);
    EXPECT_GT(measured.tasks, 0) << "a run without progress";
    const std::vector<Algorithm> all = algorithms(chosen.schedule);
    EXPECT_EQ(std::count(all.begin(), all.end(), Algorithm::automatic), 0);
    const std::vector<plan::KernelChoice> choices = choices_of(chosen.plan);
    const auto unmeasured = std::count_if(choices.begin(), choices.end(),
                                          [](const plan::KernelChoice& choice) { return choice.seconds == 0; });
    EXPECT_EQ(unmeasured == 0, measured.left_tasks == 0);
    if (run == 0) {
      EXPECT_GT(measured.left_tasks, 0);
      left = measured.left_tasks + measured.tasks;
    }
    EXPECT_EQ(measured.tasks + measured.left_tasks, left) << "measured what was known, or forgot what was not";
    left = measured.left_tasks;
  }
  EXPECT_EQ(left, 0);
  ScriptedTime time{[](const model::ConvTask&, Algorithm) { return 1.0; }};
  engine::ChooseOptions options = time.options();
  options.cache_path = folder.file("kernels.json");
  EXPECT_EQ(choose(graph, options).measured.tasks, 0);
  EXPECT_TRUE(time.runs.empty());
}

TEST(Choose, ALongEpochAllowsATenthOfIt) {
  const model::Graph graph = small_network();
  const auto measured = [&](const engine::MeasuringLimits& limits) {
    ScriptedTime time{
        [](const model::ConvTask& task, Algorithm) { return 1e-7 * static_cast<double>(model::flops(task)); }};
    engine::ChooseOptions options = time.options();
    options.limits = limits;
    return choose(graph, options).measured;
  };
  EXPECT_GT(measured({.steps_per_epoch = 1}).left_tasks, 0);
  EXPECT_EQ(measured({.steps_per_epoch = 10'000}).left_tasks, 0);
  EXPECT_GT(measured({.steps_per_epoch = 10'000, .most_seconds = 20}).left_tasks, 0);
  EXPECT_EQ(measured({.most_seconds = 0}).tasks, 0);
}

TEST(Choose, TriesManySamplesByAPartOfThem) {
  const TemporaryDirectory folder;
  const model::Graph graph = model::load_network("cosmoflow", {.input = "4x16x16x16", .mini_batch = 64});
  ScriptedTime time{[](const model::ConvTask& task, Algorithm one) {
    return 0.0001 * static_cast<double>(task.src.extents.n) * (one == Algorithm::direct ? 1 : 3);
  }};
  engine::ChooseOptions options = time.options();
  options.cache_path = folder.file("kernels.json");
  options.whole_flops = 5e8;
  choose(graph, options);
  std::set<std::int64_t> samples;
  for (const auto& [task, algorithm] : time.runs) {
    samples.insert(task.src.extents.n);
    EXPECT_EQ(task.src.extents.n, task.dst.extents.n);
    EXPECT_TRUE(task.src.extents.n == 16 || model::flops(task) <= 500'000'000);
  }
  EXPECT_EQ(samples, (std::set<std::int64_t>{16, 64}));
  // What is remembered is the whole task with its own time.
  std::ifstream file(options.cache_path);
  const auto document = base::Json::parse(file);
  for (const auto& [key, entry] : document["machines"].front().items()) {
    EXPECT_NE(key.find("src 64x"), std::string::npos) << key;
    EXPECT_NEAR(entry.at(0)["seconds"].get<double>(), 0.0064, 1e-9) << key;
  }
}

TEST(Choose, ReportsEveryTask) {
  ScriptedTime time{[](const model::ConvTask&, Algorithm) { return 0.01; }};
  engine::ChooseOptions options = time.options();
  std::vector<engine::MeasuringProgress> reports;
  options.progress = [&](const engine::MeasuringProgress& at) { reports.push_back(at); };
  const engine::Measured measured = choose(small_network(), options).measured;
  ASSERT_EQ(reports.size(), static_cast<std::size_t>(measured.tasks) + 1);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].done, static_cast<int>(i));
    EXPECT_EQ(reports[i].tasks, measured.tasks);
    EXPECT_LE(reports[i].seconds_left, 20);
  }
  EXPECT_EQ(reports.back().seconds_left, 0);
}

TEST(Choose, WhatIsRememberedIsNotMeasuredAgain) {
  const TemporaryDirectory folder;
  const engine::ChooseOptions options{.cache_path = folder.file("deep/kernels.json"), .limits = all_the_time};
  const Chosen first = choose(small_network(), options);
  EXPECT_GT(first.measured.tasks, 0);
  const Chosen second = choose(small_network(), options);
  EXPECT_EQ(second.measured.tasks, 0);
  EXPECT_EQ(first.plan, second.plan);
  EXPECT_EQ(algorithms(first.schedule), algorithms(second.schedule));
}

TEST(Choose, SaysThatNothingIsRemembered) {
  ScriptedTime time{[](const model::ConvTask&, Algorithm) { return 0.01; }};
  engine::ChooseOptions options = time.options();
  int forgotten = 0;
  options.cache_path = "/proc/nowhere/kernels.json";
  options.forgotten = [&] { ++forgotten; };
  choose(small_network(), options);
  EXPECT_EQ(forgotten, 1);
}

TEST(Choose, AnAlgorithmInThePlanStays) {
  const model::Graph graph = small_network();
  plan::Plan plan = plan::serial_plan(graph);
  for (plan::NodePlan& node : plan.nodes) {
    for (const model::Pass pass : model::all_passes) node.kernels[pass].algorithm = Algorithm::direct;
  }
  comm::Alone alone;
  const Chosen chosen = choose(graph, plan, alone, {});
  plan::Plan chosen_plan = chosen.plan;
  // What they need here is noted, and nothing else changes.
  bool some_scratch = false;
  for (plan::NodePlan& node : chosen_plan.nodes) {
    for (const model::Pass pass : model::all_passes)
      some_scratch = std::exchange(node.kernels[pass].scratch_bytes, 0) > 0 || some_scratch;
  }
  EXPECT_TRUE(some_scratch);
  EXPECT_EQ(chosen_plan, plan);
  for (const Algorithm algorithm : algorithms(chosen.schedule)) EXPECT_EQ(algorithm, Algorithm::direct);
}

TEST(Choose, WhatDoesNotFitIntoMemoryKeepsTheRule) {
  const model::Graph graph = small_network();
  comm::Alone alone;
  const TemporaryDirectory folder;
  const engine::ChooseOptions options{.cache_path = folder.file("kernels.json"), .most_bytes = 0};
  const Chosen chosen = choose(graph, options);
  EXPECT_EQ(chosen.measured.tasks, 0);
  EXPECT_GT(chosen.measured.left_tasks, 0);
  EXPECT_EQ(chosen.plan, engine::choose_kernels(graph, plan::serial_plan(graph), {}, alone, {.measure = false}));
  for (const plan::KernelChoice& choice : choices_of(chosen.plan)) EXPECT_EQ(choice.seconds, 0);
  EXPECT_FALSE(std::filesystem::exists(options.cache_path)) << "what was not measured is remembered";
}

TEST(Choose, RanksWithTheSameTasksChooseAlike) {
  const model::Graph graph = small_network();
  const plan::Plan plan = plan::make_plan(graph, "data", 2);
  std::set<std::vector<Algorithm>> choices;
  std::mutex mutex;
  run_threads(2, [&](comm::Comm& comm) {
    const Chosen chosen = choose(graph, plan, comm, {.limits = all_the_time});
    const std::lock_guard lock(mutex);
    choices.insert(algorithms(chosen.schedule));
  });
  EXPECT_EQ(choices.size(), 1U);
}

TEST(Choose, RanksWithDifferentTasksAndTimesChooseAlike) {
  // The stages of a pipeline have different tasks. Here rank 0 has no time at all, and what rank 1 finds for its own
  // holds.
  const model::Graph graph = small_network();
  const plan::Plan pipeline = plan::make_plan(graph, "pipeline", 2);
  const plan::Plan data = plan::make_plan(graph, "data", 2);
  for (const plan::Plan& plan : {pipeline, data}) {
    std::vector<std::vector<Algorithm>> choices(2);
    std::vector<engine::Measured> measured(2);
    std::vector<plan::Plan> plans(2);
    run_threads(2, [&](comm::Comm& comm) {
      const auto rank = static_cast<std::size_t>(comm.rank());
      ScriptedTime time{[](const model::ConvTask&, Algorithm one) { return one == Algorithm::direct ? 0.01 : 0.03; }};
      engine::ChooseOptions options = time.options();
      if (comm.rank() == 0) options.limits.most_seconds = 0;
      const Chosen chosen = choose(graph, plan, comm, options);
      measured[rank] = chosen.measured;
      choices[rank] = algorithms(chosen.schedule);
      plans[rank] = chosen.plan;
    });
    EXPECT_EQ(measured[0].tasks, measured[1].tasks);
    EXPECT_EQ(measured[0].left_tasks, measured[1].left_tasks);
    EXPECT_GT(measured[0].tasks, 0);
    EXPECT_EQ(plans[0], plans[1]);
    for (const Algorithm algorithm : choices[1]) EXPECT_EQ(algorithm, Algorithm::direct);
  }
}

}  // namespace
}  // namespace orthant::test
