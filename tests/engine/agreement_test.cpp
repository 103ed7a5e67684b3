#include "orthant/comm/alone.hpp"
#include "orthant/engine/engine.hpp"
#include "tests/engine/leaves.hpp"
#include "tests/engine/networks.hpp"
#include "tests/support/compare.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace orthant::test {
namespace {

using schedule::Mode;
using schedule::Schedule;

constexpr kernels::Context context{.step = 2, .seed = 5, .learning_rate = 0.1};
constexpr model::Optimizer optimizer{.momentum = 0.9, .weight_decay = 0.01};
constexpr int random_networks = 60;

/// Copies what persists between runs from the interpreter to the engine.
void copy_state(Interpreter& interpreter, engine::Engine& engine) {
  const Schedule& schedule = engine.schedule();
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const int buffer = static_cast<int>(i);
    if (!schedule.buffers[i].persistent || buffer == schedule.losses.front()) continue;
    const Numbers& from = interpreter.buffer(buffer);
    if (schedule.labels && buffer == schedule.targets.front().buffer) {
      std::transform(from.begin(), from.end(), engine.labels(buffer).begin(),
                     [](double v) { return static_cast<std::int32_t>(v); });
    } else {
      std::transform(from.begin(), from.end(), engine.floats(buffer).begin(),
                     [](double v) { return static_cast<float>(v); });
    }
  }
}

void expect_buffers_agree(Interpreter& interpreter, engine::Engine& engine, int buffer, const std::string& name,
                          double floor = 0) {
  const std::span<const float> memory = engine.floats(buffer);
  const Numbers actual(memory.begin(), memory.end());
  EXPECT_LE(relative_error(actual, interpreter.buffer(buffer), floor), network_tolerance) << name;
}

/// Between the parameters of a bucket lie items that belong to none.
void expect_state_agrees(Interpreter& interpreter, engine::Engine& engine, const schedule::Bucket& bucket, int state) {
  const Schedule& schedule = engine.schedule();
  for (const schedule::ParameterBuffers& entry : schedule.parameters) {
    const schedule::Buffer& piece = schedule.buffers[static_cast<std::size_t>(entry.value)];
    if (piece.inside != bucket.value) continue;
    const auto first = piece.offset_bytes / 4;
    const auto count = piece.bytes / 4;
    const auto memory = engine.floats(state).begin() + first;
    const auto expected = interpreter.buffer(state).begin() + first;
    const double floor = 0.1 * std::sqrt(static_cast<double>(count));
    EXPECT_LE(relative_error(Numbers(memory, memory + count), Numbers(expected, expected + count), floor),
              network_tolerance)
        << entry.parameter.name << " state";
  }
}

/// The engine against the interpreter: losses, output, gradients, updated parameters and state.
void expect_engine_agrees(const model::Graph& graph, const schedule::LowerOptions& options, int threads) {
  SCOPED_TRACE(graph.name + (options.mode == Mode::train ? "" : ", evaluation") + ", threads " +
               std::to_string(threads));
  Interpreter interpreter(lowered(graph, options));
  fill(interpreter, graph);
  comm::Alone alone;
  engine::Engine engine(lowered(graph, options), alone, {.threads = threads, .before_allocation = {}});
  copy_state(interpreter, engine);
  interpreter.run(context);
  engine.run(context);

  const Schedule& schedule = engine.schedule();
  const Numbers losses(engine.losses().begin(), engine.losses().end());
  EXPECT_LE(relative_error(losses, interpreter.buffer(schedule.losses.front())), network_tolerance);
  if (options.keep_output) expect_buffers_agree(interpreter, engine, schedule.outputs.front().buffer, "output");
  for (const Leaf& leaf : leaves(schedule)) {
    if (!schedule.buffers[static_cast<std::size_t>(leaf.gradient)].persistent) continue;  // gone after the update
    expect_buffers_agree(interpreter, engine, leaf.gradient, leaf.name + " gradient", gradient_floor(interpreter));
  }
  for (const schedule::ParameterBuffers& entry : schedule.parameters) {
    // Numbers of the size of one that may have come close to zero.
    const double floor = 0.1 * std::sqrt(static_cast<double>(model::count(entry.parameter)));
    expect_buffers_agree(interpreter, engine, entry.value, entry.parameter.name, floor);
  }
  for (const schedule::Bucket& bucket : schedule.buckets) {
    for (const int state : bucket.state) expect_state_agrees(interpreter, engine, bucket, state);
  }
}

/// Every set of options under which buffers are shared differently.
std::vector<schedule::LowerOptions> option_sets() {
  return {{.optimizer = optimizer},
          {.optimizer = optimizer, .input_gradient = true, .keep_output = true},
          {.update = false, .keep_output = true},
          {.mode = Mode::evaluate, .update = false, .keep_output = true}};
}

TEST(Engine, AgreesWithTheReference) {
  for (const model::Graph& graph : small_networks()) {
    for (const schedule::LowerOptions& options : option_sets()) {
      for (const int threads : {1, 2}) expect_engine_agrees(graph, options, threads);
    }
  }
}

TEST(Engine, AgreesWithTheReferenceOnRandomNetworks) {
  for (int seed = 0; seed < random_networks; ++seed) {
    for (const schedule::LowerOptions& options : option_sets()) {
      expect_engine_agrees(random_network(static_cast<std::uint64_t>(seed)), options, 1 + seed % 3);
    }
  }
}

TEST(Engine, SecondRunGivesTheSameBits) {
  for (const model::Graph& graph : small_networks()) {
    const schedule::LowerOptions options{.update = false, .input_gradient = true, .keep_output = true};
    comm::Alone alone;
    engine::Engine engine(lowered(graph, options), alone, {.threads = 2, .before_allocation = {}});
    Interpreter interpreter(lowered(graph, options));
    fill(interpreter, graph);
    std::vector<std::vector<float>> runs[2];
    for (auto& buffers : runs) {
      copy_state(interpreter, engine);
      engine.run(context);
      for (const Leaf& leaf : leaves(engine.schedule())) {
        const std::span<const float> memory = engine.floats(leaf.gradient);
        buffers.emplace_back(memory.begin(), memory.end());
      }
    }
    EXPECT_EQ(runs[0], runs[1]) << graph.name;
  }
}

}  // namespace
}  // namespace orthant::test
