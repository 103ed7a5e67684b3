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
      {"unet3d", {.input = "1x16x16x16", .mini_batch = 4, .settings = {{"width", "4"}}}},
      {"resnet18", {.input = "3x64x64", .mini_batch = 8, .settings = {{"classes", "10"}}}},
  };
  const std::vector<Small> larger{
      {"cosmoflow", {.input = "4x32x32x32", .mini_batch = 2, .settings = {{"batch_norm", "true"}}}},
      {"cosmoflow-mlperf", {.input = "4x32x32x32", .mini_batch = 2, .settings = {}}},
      {"resnet50", {.input = "3x64x64", .mini_batch = 8, .settings = {{"classes", "10"}}}},
      {"resnet152", {.input = "3x64x64", .mini_batch = 16, .settings = {{"classes", "10"}}}},
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

  [[nodiscard]] const RanksOptions& options() const { return options_; }
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

class Strategies : public testing::TestWithParam<Small> {};

/// A ReLU whose argument is zero but for rounding may open on one side only, and then gradients differ by more than
/// rounding; other data have no such place.
constexpr std::uint64_t seeds = 4;

TEST_P(Strategies, AgreeWithOneRank) {
  const RanksOptions gradients{.data = Data::reals, .lower = {.update = false, .keep_output = true}};
  const RanksOptions training{
      .data = Data::reals, .runs = 10, .learning_rate = 1e-5, .lower = {.optimizer = {.momentum = 0.9}}};
  const model::Graph graph = model::load_network(GetParam().name, GetParam().options);
  std::vector<Reference> one_gradient;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RanksOptions other = gradients;
    other.seed = seed;
    one_gradient.emplace_back(graph, other);
  }
  Reference one_training(graph, training);
  for (const std::string& strategy : plan::strategy_names()) {
    for (const int ranks : {2, 3, 4, 8}) {
      SCOPED_TRACE(strategy + ", " + std::to_string(ranks) + " ranks");
      plan::Plan plan;
      try {
        plan = plan::make_plan(graph, strategy, ranks);
      } catch (const base::Error& error) {
        EXPECT_EQ(error.code(), base::Exit::does_not_fit) << error.what();  // refused, with a reason
        continue;
      }
      const int pieces = plan.micro_batches;
      std::pair<double, std::string> worst;
      for (Reference& reference : one_gradient) {
        worst = {0, ""};
        for (const auto& [name, error] : errors(run_ranks(graph, plan, reference.options()), reference.with(pieces)))
          worst = std::max(worst, std::pair(error, name));
        if (worst.first <= 1e-5) break;
      }
      EXPECT_LE(worst.first, 1e-5) << worst.second;
      const Outcome many = run_ranks(graph, plan, training);
      const Outcome& one = one_training.with(pieces);
      for (std::size_t i = 0; i < one.losses.size(); ++i)
        EXPECT_NEAR(many.losses[i], one.losses[i], 1e-4 * std::abs(one.losses[i])) << "step " << i + 1;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Strategies, testing::ValuesIn(networks()), [](const auto& test) {
  std::string name = test.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name + (test.param.options.settings.contains("batch_norm") ? "_batch_norm" : "");
});

}  // namespace
}  // namespace orthant::test
