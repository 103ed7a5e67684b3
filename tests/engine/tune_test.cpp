#include "orthant/engine/tune.hpp"

#include "orthant/base/error.hpp"
#include "orthant/engine/kernel_needs.hpp"
#include "orthant/microbatch/divide.hpp"
#include "orthant/model/network.hpp"
#include "tests/data/temporary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

namespace orthant::test {
namespace {

using engine::TableOptions;
using engine::Tuned;
using engine::WorkspaceLimit;
using model::Algorithm;
using Of = WorkspaceLimit::Of;

model::Graph two_convolutions(std::int64_t samples = 6) {
  const tensor::Window three{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  model::GraphBuilder builder("two", 3, {.n = samples, .c = 16, .d = 16, .h = 8, .w = 8});
  builder.add("a", model::Conv{.filters = 16, .window = three});
  builder.add("b", model::Conv{.filters = 32, .window = three});
  return builder.finish({.terms = {{}}});
}

/// Kernels take as long as they are said to, and nothing runs. `tries` counts.
struct Scripted {
  std::function<double(const model::ConvTask& task, const std::string& way)> seconds;
  int tries = 0;

  TableOptions options(microbatch::Policy policy = microbatch::Policy::power_of_two) {
    return {.policy = policy,
            .most_bytes = std::int64_t{1} << 30,
            .seconds = [this](const model::ConvTask& task, const std::string& way, int, const auto&) {
              ++tries;
              return seconds(task, way);
            }};
  }
};

/// So much for each sample, by the sizes of pieces: small ones are faster.
double by_pieces(const model::ConvTask& task, const std::string& way) {
  if (task.src.extents.n == 6 && way.find(' ') == std::string::npos) return 1;
  return task.src.extents.n == 6 ? 0.5 : 0.08 * static_cast<double>(task.src.extents.n);
}

Tuned tune(const model::Graph& graph, const TableOptions& options, const WorkspaceLimit& limit) {
  return engine::tune(graph, plan::serial_plan(graph), {}, options, limit);
}

std::string message_of(const model::Graph& graph, const TableOptions& options, const WorkspaceLimit& limit) {
  try {
    tune(graph, options, limit);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.code(), base::Exit::does_not_fit);
    return error.what();
  }
  return "no error";
}

constexpr WorkspaceLimit no_limit{.of = Of::kernel, .bytes = std::int64_t{1} << 40};

TEST(Tune, PiecesOfThePlanAreThoseThatWereMeasuredToBeFaster) {
  const model::Graph graph = two_convolutions();
  Scripted script{by_pieces};
  const Tuned tuned = tune(graph, script.options(), no_limit);
  ASSERT_EQ(tuned.kernels.size(), 5U);  // the first convolution has no gradient of its source
  EXPECT_EQ(*tuned.undivided_seconds, 5);
  EXPECT_EQ(tuned.seconds, 2.5);
  for (const engine::TunedKernel& kernel : tuned.kernels) {
    const plan::KernelChoice& choice =
        tuned.plan.nodes[static_cast<std::size_t>(kernel.kernel.node)].kernels[kernel.kernel.task.pass];
    ASSERT_FALSE(choice.pieces.empty()) << kernel.kernel.name;
    EXPECT_LE(choice.pieces.front().samples, 4);
  }
}

TEST(Tune, ADivisionThatIsNotFasterAsAWholeIsNotTaken) {
  const model::Graph graph = two_convolutions();
  Scripted script{[](const model::ConvTask& task, const std::string&) {
    return task.src.extents.n == 6 ? 1.0 : 0.08 * static_cast<double>(task.src.extents.n);
  }};
  const Tuned tuned = tune(graph, script.options(), no_limit);
  EXPECT_EQ(tuned.seconds, *tuned.undivided_seconds);
  for (const engine::TunedKernel& kernel : tuned.kernels) EXPECT_EQ(kernel.after.pieces.size(), 1U);
}

TEST(Tune, ASecondRunMeasuresNothing) {
  const TemporaryDirectory folder;
  const model::Graph graph = two_convolutions();
  Scripted script{by_pieces};
  TableOptions options = script.options();
  options.cache_path = folder.file("kernels.json");
  const Tuned first = tune(graph, options, no_limit);
  EXPECT_GT(first.measured, 0);
  script.tries = 0;
  const Tuned second = tune(graph, options, no_limit);
  EXPECT_EQ(script.tries, 0);
  EXPECT_EQ(second.measured, 0);
  EXPECT_EQ(second.plan, first.plan);
  EXPECT_EQ(second.seconds, first.seconds);
}

/// Pieces of a network's kernels are whole kernels of one with fewer samples, and the other way round.
TEST(Tune, MiniBatchesShareWhatWasMeasured) {
  const TemporaryDirectory folder;
  Scripted script{by_pieces};
  TableOptions options = script.options();
  const Tuned alone = tune(two_convolutions(2), options, no_limit);
  options.cache_path = folder.file("kernels.json");
  const Tuned larger = tune(two_convolutions(4), options, no_limit);
  const Tuned after = tune(two_convolutions(2), options, no_limit);
  EXPECT_LT(after.measured, alone.measured);
  ASSERT_EQ(after.fronts.size(), alone.fronts.size());
  for (std::size_t i = 0; i < alone.fronts.size(); ++i) {
    ASSERT_EQ(after.fronts[i].size(), alone.fronts[i].size()) << alone.kernels[i].kernel.name;
    EXPECT_EQ(after.fronts[i].back().seconds, alone.fronts[i].back().seconds);
  }
}

TEST(Tune, AFileThatIsDamagedOrCannotBeWrittenIsSaid) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  std::ofstream(path) << "{\"format\": \"orthant-ker";
  Scripted script{by_pieces};
  TableOptions options = script.options(microbatch::Policy::undivided);
  int ignored = 0, forgotten = 0;
  options.ignored = [&](const std::string&) { ++ignored; };
  options.forgotten = [&] { ++forgotten; };
  options.cache_path = path;
  tune(two_convolutions(), options, no_limit);
  EXPECT_EQ(ignored, 1);
  EXPECT_EQ(forgotten, 0);
  tune(two_convolutions(), options, no_limit);
  EXPECT_EQ(ignored, 1) << "the damaged file was not replaced";
  options.cache_path = "/proc/none/kernels.json";
  tune(two_convolutions(), options, no_limit);
  EXPECT_EQ(forgotten, 1) << "said once, not for every kernel";
}

TEST(Tune, LimitsHold) {
  const model::Graph graph = two_convolutions();
  Scripted script{by_pieces};
  const TableOptions options = script.options();
  const Tuned free = tune(graph, options, no_limit);
  for (const engine::TunedKernel& kernel : free.kernels) ASSERT_GT(kernel.after.workspace_bytes, 0);
  const std::int64_t most = free.workspace_bytes;
  const Tuned each = tune(graph, options, {.of = Of::kernel, .bytes = most});
  EXPECT_EQ(each.workspace_bytes, most);
  EXPECT_NE(message_of(graph, options, {.of = Of::kernel, .bytes = 0}).find("--workspace: a.forward takes at least "),
            std::string::npos);
  const Tuned total = tune(graph, options, {.of = Of::total, .bytes = free.total_bytes});
  EXPECT_LE(total.total_bytes, free.total_bytes);
  EXPECT_LE(total.seconds, free.seconds);
  EXPECT_NE(message_of(graph, options, {.of = Of::total, .bytes = 64}).find("--total: the convolutions take at least "),
            std::string::npos);
}

TEST(Tune, TheArenaStaysWithinTheMemory) {
  const model::Graph graph = two_convolutions();
  Scripted script{by_pieces};
  const TableOptions options = script.options();
  const Tuned free = tune(graph, options, {.of = Of::memory, .bytes = std::int64_t{1} << 40});
  const Tuned tight = tune(graph, options, {.of = Of::memory, .bytes = free.arena_bytes});
  EXPECT_LE(tight.arena_bytes, free.arena_bytes);
  EXPECT_EQ(tight.seconds, free.seconds);
  schedule::LowerOptions lowering;
  lowering.needs = engine::kernel_needs(1);
  EXPECT_EQ(schedule::place(schedule::lower(graph, tight.plan, 0, lowering)).arena_bytes, tight.arena_bytes);
  EXPECT_NE(message_of(graph, options, {.of = Of::memory, .bytes = 1000}).find("--memory: "), std::string::npos);
}

/// Real kernels: the plan runs, and what was asked for is in the schedule.
TEST(Tune, ThePlanLowersToItsPieces) {
  const model::Graph graph = two_convolutions(3);
  const Tuned tuned = tune(graph, {.most_bytes = std::int64_t{1} << 30, .seconds = {}}, no_limit);
  schedule::LowerOptions lowering;
  lowering.needs = engine::kernel_needs(1);
  const schedule::Schedule schedule = schedule::lower(graph, tuned.plan, 0, lowering);
  std::map<std::pair<int, model::Pass>, std::size_t> tasks;
  for (const schedule::Step& step : schedule.steps) {
    const auto* task = std::get_if<model::Task>(&step.work);
    if (const auto* conv = task ? std::get_if<model::ConvTask>(task) : nullptr) ++tasks[{step.node, conv->pass}];
  }
  for (const engine::TunedKernel& kernel : tuned.kernels) {
    EXPECT_EQ((tasks[{kernel.kernel.node, kernel.kernel.task.pass}]),
              model::divided(kernel.kernel.task, kernel.after.pieces).size())
        << kernel.kernel.name;
    EXPECT_GT(kernel.after.error, 0);
    EXPECT_LT(kernel.after.error, 2e-6);
  }
}

}  // namespace
}  // namespace orthant::test
