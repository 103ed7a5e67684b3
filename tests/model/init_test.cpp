#include "orthant/model/init.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace orthant::model {
namespace {

Graph network(Init init) {
  GraphBuilder builder("net", 3, {1, 8, 4, 4, 4});
  builder.add("conv", Conv{.filters = 16, .window = {.size = tensor::cube(3)}, .init = init, .bias_value = 0.5});
  builder.add("bn", BatchNorm{});
  builder.add("conv2", Conv{.filters = 16, .window = {.size = {2, 2, 2}}, .init = init});
  return builder.finish({.terms = {{}}});
}

std::vector<float> values(const Graph& graph, const std::string& name, std::uint64_t seed) {
  const std::vector<Parameter> all = parameters(graph);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Parameter& p) { return p.name == name; });
  std::vector<float> items(static_cast<std::size_t>(count(*found)));
  initialise(graph, *found, seed, items);
  return items;
}

double mean(const std::vector<float>& items) {
  double sum = 0;
  for (const float item : items) sum += item;
  return sum / static_cast<double>(items.size());
}

double deviation(const std::vector<float>& items) {
  double sum = 0;
  for (const float item : items) sum += static_cast<double>(item) * item;
  return std::sqrt(sum / static_cast<double>(items.size()));
}

double largest(const std::vector<float>& items) {
  double most = 0;
  for (const float item : items) most = std::max(most, std::abs(static_cast<double>(item)));
  return most;
}

TEST(Initialise, FollowsPyTorchsDefault) {
  const Graph graph = network(Init::torch);
  const double bound = 1 / std::sqrt(8.0 * 27);

  for (const char* name : {"conv.weight", "conv.bias"}) {
    const std::vector<float> items = values(graph, name, 1);
    EXPECT_LE(largest(items), bound) << name;
    EXPECT_GT(largest(items), 0.8 * bound) << name;
  }
  EXPECT_NEAR(mean(values(graph, "conv.weight", 1)), 0, 0.05 * bound);
}

TEST(Initialise, FollowsGlorotAndHe) {
  const double glorot = std::sqrt(6 / (8.0 * 27 + 16.0 * 27));
  const std::vector<float> uniform = values(network(Init::glorot_uniform), "conv.weight", 1);
  EXPECT_LE(largest(uniform), glorot);
  EXPECT_NEAR(deviation(uniform), glorot / std::sqrt(3.0), 0.05 * glorot);

  const double he = std::sqrt(2 / (16.0 * 27));
  const std::vector<float> normal = values(network(Init::he_normal), "conv.weight", 1);
  EXPECT_NEAR(deviation(normal), he, 0.05 * he);
  EXPECT_GT(largest(normal), 3 * he);
  EXPECT_EQ(values(network(Init::he_normal), "conv.bias", 1), std::vector<float>(16, 0.5F));
}

TEST(Initialise, StartsNormalisationAsIdentity) {
  const Graph graph = network(Init::torch);

  EXPECT_EQ(values(graph, "bn.weight", 1), std::vector<float>(16, 1.0F));
  EXPECT_EQ(values(graph, "bn.bias", 1), std::vector<float>(16, 0.0F));
  EXPECT_EQ(values(graph, "bn.running_mean", 1), std::vector<float>(16, 0.0F));
  EXPECT_EQ(values(graph, "bn.running_var", 1), std::vector<float>(16, 1.0F));
}

TEST(Initialise, DependsOnSeedAndNameOnly) {
  const Graph graph = network(Init::torch);
  GraphBuilder builder("other", 3, {5, 8, 9, 9, 9});
  builder.add("first", Softmax{});
  builder.add("conv", Conv{.filters = 16, .window = {.size = tensor::cube(3)}});
  const Graph other = builder.finish({.terms = {{}}});

  EXPECT_EQ(values(graph, "conv.weight", 7), values(other, "conv.weight", 7));
  EXPECT_NE(values(graph, "conv.weight", 7), values(graph, "conv.weight", 8));
  EXPECT_NE(values(graph, "conv.bias", 7), values(graph, "conv2.bias", 7));
}

}  // namespace
}  // namespace orthant::model
