#include "orthant/engine/choose.hpp"

#include "orthant/comm/alone.hpp"
#include "orthant/engine/choice_cache.hpp"
#include "orthant/model/network.hpp"
#include "orthant/plan/strategy.hpp"
#include "tests/data/temporary.hpp"
#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <set>
#include <thread>

namespace orthant::test {
namespace {

using engine::ChoiceCache;
using engine::Choices;
using model::Algorithm;

model::Graph small_network() { return model::load_network("cosmoflow", {.input = "4x16x16x16", .mini_batch = 2}); }

std::vector<Algorithm> algorithms(const schedule::Schedule& schedule) {
  std::vector<Algorithm> found;
  for (const schedule::Step& step : schedule.steps) {
    const auto* task = std::get_if<model::Task>(&step.work);
    if (const auto* conv = task ? std::get_if<model::ConvTask>(task) : nullptr) found.push_back(conv->algorithm);
  }
  return found;
}

TEST(Choose, EveryConvolutionGetsAnAlgorithm) {
  const model::Graph graph = small_network();
  schedule::Schedule schedule = schedule::lower(graph, plan::serial_plan(graph), 0, {});
  comm::Alone alone;
  engine::choose_algorithms(schedule, alone, {});
  for (const Algorithm algorithm : algorithms(schedule)) EXPECT_NE(algorithm, Algorithm::automatic);
}

TEST(Choose, WhatIsRememberedIsNotMeasuredAgain) {
  const TemporaryDirectory folder;
  const model::Graph graph = small_network();
  const schedule::Schedule lowered = schedule::lower(graph, plan::serial_plan(graph), 0, {});
  comm::Alone alone;
  int measured = 0;
  const engine::ChooseOptions options{.cache_path = folder.file("deep/kernels.json"),
                                      .measuring = [&](int tasks) { measured += tasks; }};
  schedule::Schedule first = lowered;
  engine::choose_algorithms(first, alone, options);
  EXPECT_GT(measured, 0);
  measured = 0;
  schedule::Schedule second = lowered;
  engine::choose_algorithms(second, alone, options);
  EXPECT_EQ(measured, 0);
  EXPECT_EQ(algorithms(first), algorithms(second));
}

TEST(Choose, SaysThatNothingIsRemembered) {
  const model::Graph graph = small_network();
  schedule::Schedule schedule = schedule::lower(graph, plan::serial_plan(graph), 0, {});
  comm::Alone alone;
  int forgotten = 0;
  engine::choose_algorithms(
      schedule, alone,
      {.cache_path = "/proc/nowhere/kernels.json", .most_bytes = 0, .forgotten = [&] { ++forgotten; }});
  EXPECT_EQ(forgotten, 1);
}

TEST(Choose, AnAlgorithmInThePlanStays) {
  const model::Graph graph = small_network();
  plan::Plan plan = plan::serial_plan(graph);
  for (plan::NodePlan& node : plan.nodes) node.kernel = Algorithm::direct;
  schedule::Schedule schedule = schedule::lower(graph, plan, 0, {});
  comm::Alone alone;
  engine::choose_algorithms(schedule, alone, {});
  for (const Algorithm algorithm : algorithms(schedule)) EXPECT_EQ(algorithm, Algorithm::direct);
}

TEST(Choose, WhatDoesNotFitIntoMemoryKeepsTheRule) {
  const model::Graph graph = small_network();
  schedule::Schedule schedule = schedule::lower(graph, plan::serial_plan(graph), 0, {});
  comm::Alone alone;
  engine::choose_algorithms(schedule, alone, {.most_bytes = 0});
  for (const Algorithm algorithm : algorithms(schedule)) EXPECT_NE(algorithm, Algorithm::automatic);
}

TEST(Choose, RanksWithTheSameTasksChooseAlike) {
  const model::Graph graph = small_network();
  const plan::Plan plan = plan::make_plan(graph, "data", 2);
  std::set<std::vector<Algorithm>> choices;
  std::mutex mutex;
  run_threads(2, [&](comm::Comm& comm) {
    schedule::Schedule schedule = schedule::lower(graph, plan, comm.rank(), {});
    engine::choose_algorithms(schedule, comm, {});
    const std::lock_guard lock(mutex);
    choices.insert(algorithms(schedule));
  });
  EXPECT_EQ(choices.size(), 1U);
}

TEST(ChoiceCache, KeepsMachinesApart) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  EXPECT_TRUE(ChoiceCache(path, "a").store({{"task", Algorithm::winograd}}));
  EXPECT_TRUE(ChoiceCache(path, "b").store({{"task", Algorithm::direct}}));
  EXPECT_EQ(ChoiceCache(path, "a").load(), (Choices{{"task", Algorithm::winograd}}));
  EXPECT_EQ(ChoiceCache(path, "b").load(), (Choices{{"task", Algorithm::direct}}));
  EXPECT_TRUE(ChoiceCache(path, "c").load().empty());
}

TEST(ChoiceCache, ADamagedFileIsEmptyAndWrittenAnew) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  for (const char* text :
       {"", "{", "[]", R"({"format": "orthant-kernels", "version": 2, "machines": {}})",
        R"({"format": "orthant-kernels", "version": 1, "machines": {"a": 7}})",
        R"({"format": "orthant-kernels", "version": 1, "machines": {"a": {"task": 3, "other": "magic"}}})"}) {
    std::ofstream(path) << text;
    EXPECT_TRUE(ChoiceCache(path, "a").load().empty()) << text;
    EXPECT_TRUE(ChoiceCache(path, "a").store({{"task", Algorithm::matrix}})) << text;
    EXPECT_EQ(ChoiceCache(path, "a").load().at("task"), Algorithm::matrix) << text;
  }
}

TEST(ChoiceCache, SurvivesManyWriters) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&, i] {
      EXPECT_TRUE(ChoiceCache(path, "a").store({{"task " + std::to_string(i), Algorithm::onednn}}));
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ChoiceCache(path, "a").load().size(), 8U);
}

TEST(ChoiceCache, APlaceThatCannotBeWrittenIsNoError) {
  EXPECT_FALSE(ChoiceCache("/proc/nowhere/kernels.json", "a").store({{"task", Algorithm::direct}}));
  EXPECT_TRUE(ChoiceCache("", "a").store({{"task", Algorithm::direct}}));
}

}  // namespace
}  // namespace orthant::test
