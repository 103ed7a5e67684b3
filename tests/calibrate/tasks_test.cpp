#include "orthant/calibrate/tasks.hpp"

#include "orthant/calibrate/links.hpp"
#include "orthant/calibrate/plans.hpp"
#include "orthant/calibrate/shapes.hpp"
#include "orthant/comm/alone.hpp"
#include "orthant/oracle/prices.hpp"
#include "orthant/plan/strategy.hpp"
#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>

namespace orthant::calibrate {
namespace {

model::Graph two_convolutions() {
  const tensor::Window three{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  model::GraphBuilder builder("two", 3, {.n = 2, .c = 4, .d = 8, .h = 8, .w = 8});
  builder.add("first", model::Conv{.filters = 4, .window = three});
  builder.add("second", model::Conv{.filters = 4, .window = three});
  builder.add("flatten", model::Flatten{});
  builder.add("dense", model::Dense{.features = 3});
  return builder.finish({.terms = {{}}});
}

/// A clock by which direct convolutions take 2 s, other algorithms 3 s and everything else 1 s. Counts runs.
struct FakeClock {
  std::map<std::string, int> runs{};
  double now = 0;

  TaskOptions options() {
    TaskOptions options;
    options.timed = [this](const model::Task& task, const std::function<void()>& run) {
      run();
      ++runs[oracle::task_key(task)];
      const auto* conv = std::get_if<model::ConvTask>(&task);
      const double seconds = !conv ? 1 : conv->algorithm == model::Algorithm::direct ? 2 : 3;
      now += seconds;
      return seconds;
    };
    options.now = [this] { return now; };
    return options;
  }
};

TaskTimes measure(FakeClock& clock, const TaskTimes& known, double seconds = 1e30) {
  comm::Alone alone;
  const model::Graph graph = two_convolutions();
  TaskOptions options = clock.options();
  options.seconds = seconds;
  return measure_plan(graph, plan::serial_plan(graph), {}, alone, known, options);
}

TEST(Tasks, HaveTheTimesOfTheClockInAllWays) {
  FakeClock clock;
  const TaskTimes times = measure(clock, {});

  int direct = 0, others = 0;
  for (const auto& [key, task] : times) {
    const bool is_conv = task.features.family.starts_with("conv");
    const bool is_direct = key.find("direct") != std::string::npos;
    if (is_conv) ++(is_direct ? direct : others);
    EXPECT_DOUBLE_EQ(task.seconds, !is_conv ? 1 : is_direct ? 2 : 3) << key;
    EXPECT_GE(clock.runs[key], 3) << key;
  }
  // The first and the second convolution are one task forwards; the first needs no gradient of its input.
  EXPECT_GE(direct, 3);
  EXPECT_GE(others, direct);
}

TEST(Tasks, ThatAreKnownAreNotMeasuredAgain) {
  FakeClock first, second, third;
  TaskTimes known = measure(first, {});
  EXPECT_TRUE(measure(second, known).empty());
  EXPECT_TRUE(second.runs.empty());

  const std::string lost = known.begin()->first;
  known.erase(known.begin());
  const TaskTimes found = measure(third, known);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.begin()->first, lost);
}

TEST(Tasks, AreNotBegunAfterTheTimeThatThereIs) {
  FakeClock patient, hasty;
  measure(patient, {});
  measure(hasty, {}, 1);
  EXPECT_LT(hasty.now, patient.now / 3);
}

TEST(Tasks, OfAllRanksAreKnownToAll) {
  const model::Graph graph = two_convolutions();
  std::vector<TaskTimes> times(2);
  test::run_threads(2, [&](comm::Comm& comm) {
    FakeClock clock;
    times[static_cast<std::size_t>(comm.rank())] =
        measure_plan(graph, plan::make_plan(graph, "spatial", 2), {}, comm, {}, clock.options());
  });
  ASSERT_FALSE(times[0].empty());
  EXPECT_EQ(times[0].size(), times[1].size());
  for (const auto& [key, task] : times[0]) EXPECT_EQ(task.seconds, times[1].at(key).seconds);
}

TEST(Samples, CanAllBeLowered) {
  for (const Sample& sample : general_samples())
    EXPECT_GT(schedule_of(sample, {}).steps.size(), 10U) << text_of(sample);
}

TEST(Links, SpeedIsTheSlopeWhateverTheStart) {
  std::vector<SizedTime> times;
  for (const double megabytes : {1.0, 2.0, 4.0, 8.0}) times.push_back({megabytes * 1e6, 1e-3 + megabytes * 1e6 / 5e9});
  EXPECT_NEAR(fitted_speed(times), 5e9, 1);
}

}  // namespace
}  // namespace orthant::calibrate
