#include "orthant/base/error.hpp"
#include "orthant/model/network.hpp"
#include "orthant/plan/strategy.hpp"
#include "tests/engine/ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace orthant::test {
namespace {

struct Small {
  const char* name;
  model::NetworkOptions options;
};

/// The zoo at sizes that take no time; the larger ones only where ORTHANT_TEST_FACTOR asks for more.
std::vector<Small> networks() {
  std::vector<Small> list{
      {"cosmoflow", {.input = "4x32x32x32", .mini_batch = 2, .settings = {}}},
      {"cosmoflow", {.input = "4x32x32x32", .mini_batch = 2, .settings = {{"batch_norm", "true"}}}},
      {"unet3d", {.input = "1x16x16x16", .mini_batch = 4, .settings = {{"width", "4"}}}},
      {"resnet18", {.input = "3x32x32", .mini_batch = 4, .settings = {{"classes", "10"}}}},
  };
  const std::vector<Small> larger{
      {"cosmoflow-mlperf", {.input = "4x32x32x32", .mini_batch = 2, .settings = {}}},
      {"resnet50", {.input = "3x64x64", .mini_batch = 8, .settings = {{"classes", "10"}}}},
      {"resnet152", {.input = "3x64x64", .mini_batch = 8, .settings = {{"classes", "10"}}}},
      {"wide-resnet50", {.input = "3x64x64", .mini_batch = 8, .settings = {{"classes", "10"}}}},
      {"vgg16", {.input = "3x32x32", .mini_batch = 8, .settings = {{"classes", "10"}}}},
      {"alexnet", {.input = "3x64x64", .mini_batch = 8, .settings = {{"classes", "10"}}}},
  };
  if (std::getenv("ORTHANT_TEST_FACTOR")) list.insert(list.end(), larger.begin(), larger.end());
  return list;
}

/// What one rank comes to with the same micro-batches.
class Reference {
 public:
  Reference(const model::Graph& graph, const RanksOptions& options) : graph_(graph), options_(options) {}

  const Outcome& with(int micro_batches) {
    auto found = known_.find(micro_batches);
    if (found == known_.end()) {
      plan::Plan plan = plan::serial_plan(graph_);
      plan.micro_batches = micro_batches;
      found = known_.emplace(micro_batches, run_ranks(graph_, plan, options_)).first;
    }
    return found->second;
  }

 private:
  const model::Graph& graph_;
  RanksOptions options_;
  std::map<int, Outcome> known_;
};

TEST(Strategies, EveryZooNetworkAgreesWithOneRank) {
  const RanksOptions gradients{.data = Data::reals, .lower = {.update = false, .keep_output = true}};
  const RanksOptions training{
      .data = Data::reals, .runs = 10, .learning_rate = 1e-5, .lower = {.optimizer = {.momentum = 0.9}}};
  for (const Small& small : networks()) {
    const model::Graph graph = model::load_network(small.name, small.options);
    Reference one_gradient(graph, gradients);
    Reference one_training(graph, training);
    for (const std::string& strategy : plan::strategy_names()) {
      for (const int ranks : {2, 3, 4, 8}) {
        SCOPED_TRACE(std::string(small.name) + ", " + strategy + ", " + std::to_string(ranks) + " ranks");
        plan::Plan plan;
        try {
          plan = plan::make_plan(graph, strategy, ranks);
        } catch (const base::Error& error) {
          EXPECT_EQ(error.code(), base::Exit::does_not_fit) << error.what();  // refused, with a reason
          continue;
        }
        const int pieces = plan.micro_batches;
        for (const auto& [name, error] : errors(run_ranks(graph, plan, gradients), one_gradient.with(pieces)))
          EXPECT_LE(error, 1e-5) << name;
        const Outcome many = run_ranks(graph, plan, training);
        const Outcome& one = one_training.with(pieces);
        for (std::size_t i = 0; i < one.losses.size(); ++i)
          EXPECT_NEAR(many.losses[i], one.losses[i], 1e-4 * std::abs(one.losses[i])) << "step " << i + 1;
      }
    }
  }
}

}  // namespace
}  // namespace orthant::test
