#include "orthant/model/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orthant::model {
namespace {

using Extents = std::vector<std::int64_t>;

const Loss mse{.terms = {{.kind = LossKind::mean_squared_error}}};

TEST(Parameters, HaveTheNamesAndExtentsOfPyTorch) {
  GraphBuilder builder("net", 3, {1, 4, 8, 8, 8});
  builder.add("conv", Conv{.filters = 6, .window = {.size = {1, 2, 3}}, .groups = 2});
  builder.add("bn", BatchNorm{});
  builder.add("up", ConvTranspose{.filters = 8, .window = {.size = {2, 2, 2}}, .groups = 2, .bias = false});
  builder.add("pool", GlobalAveragePool{});
  builder.add("fc", Dense{.features = 5});
  const std::vector<Parameter> found = parameters(builder.finish(mse));

  std::vector<std::pair<std::string, Extents>> named;
  for (const Parameter& parameter : found) named.emplace_back(parameter.name, parameter.extents);
  const std::vector<std::pair<std::string, Extents>> expected{{"conv.weight", {6, 2, 1, 2, 3}},
                                                              {"conv.bias", {6}},
                                                              {"bn.weight", {6}},
                                                              {"bn.bias", {6}},
                                                              {"bn.running_mean", {6}},
                                                              {"bn.running_var", {6}},
                                                              {"up.weight", {6, 4, 2, 2, 2}},
                                                              {"fc.weight", {5, 8}},
                                                              {"fc.bias", {5}}};
  EXPECT_EQ(named, expected);
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](const Parameter& p) { return p.trainable; }), 7);
}

TEST(Parameters, OfTwoDimensionalNetworksHaveNoDepth) {
  GraphBuilder builder("net", 2, {1, 3, 1, 8, 8});
  builder.add("conv", Conv{.filters = 6, .window = {.size = {1, 2, 3}}, .bias = false});

  EXPECT_EQ(parameters(builder.finish(mse)).front().extents, (Extents{6, 3, 2, 3}));
}

TEST(ParameterCount, LeavesRunningStatisticsOut) {
  GraphBuilder builder("net", 3, {1, 4, 8, 8, 8});
  builder.add("bn", BatchNorm{});
  const Graph graph = builder.finish(mse);

  EXPECT_EQ(parameter_count(graph), 8);
  EXPECT_EQ(node_parameters(graph, 1).size(), 4U);
  EXPECT_TRUE(node_parameters(graph, 0).empty());
}

}  // namespace
}  // namespace orthant::model
