#include "tests/engine/finite_difference.hpp"
#include "tests/engine/leaves.hpp"
#include "tests/engine/networks.hpp"
#include "tests/support/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace orthant::test {
namespace {

constexpr kernels::Context context{.step = 2, .seed = 5, .learning_rate = 0.1};
constexpr int random_networks = 60;

void expect_differences_agree(const model::Graph& graph) {
  SCOPED_TRACE(graph.name);
  Interpreter interpreter(lowered(graph, {.update = false, .input_gradient = true}));
  fill(interpreter, graph);
  interpreter.run(context);
  EXPECT_TRUE(std::isfinite(interpreter.buffer(interpreter.schedule().losses.front()).back()));
  const double floor = gradient_floor(interpreter);
  for (const Leaf& leaf : leaves(interpreter.schedule())) {
    const Numbers differences = central_differences(interpreter, leaf.value, context);
    const double error = relative_error(gradient_of(interpreter, leaf), differences, floor);
    EXPECT_LE(error, finite_difference_tolerance) << leaf.name;
  }
}

TEST(Gradients, AgreeWithFiniteDifferences) {
  for (const model::Graph& graph : small_networks()) expect_differences_agree(graph);
}

/// Flattening one channel of one sample is no copy, so the gradient of the input is a part of the concatenation's.
TEST(Gradients, OfAnInputInsideAConcatenationAgree) {
  model::GraphBuilder builder("concatenated", 3, {.n = 1, .c = 1, .d = 2, .h = 2, .w = 3});
  builder.add("mean", model::GlobalAveragePool{}, {0});
  const int mean = builder.add("flat_mean", model::Flatten{});
  builder.add("tanh", model::Activation{.kind = model::ActivationKind::tanh}, {0});
  const int all = builder.add("flat", model::Flatten{});
  builder.add("concat", model::Concat{}, {mean, all});
  builder.add("dense", model::Dense{.features = 2});
  expect_differences_agree(builder.finish({.terms = {{}}}));
}

TEST(Gradients, RandomNetworksHaveEveryOp) {
  std::set<std::size_t> kinds;
  for (int seed = 0; seed < random_networks; ++seed) {
    for (const model::Node& node : random_network(static_cast<std::uint64_t>(seed)).nodes)
      kinds.insert(node.op.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<model::Op>) << "an op is missing in random_network.cpp";
}

TEST(Gradients, OfRandomNetworksAgreeWithFiniteDifferences) {
  for (int seed = 0; seed < random_networks; ++seed)
    expect_differences_agree(random_network(static_cast<std::uint64_t>(seed)));
}

}  // namespace
}  // namespace orthant::test
