#include "orthant/train/scores.hpp"

#include "orthant/base/json.hpp"
#include "orthant/train/scores_text.hpp"
#include "tests/train/small_network.hpp"

#include <gtest/gtest.h>

namespace orthant::train {
namespace {

TEST(Scores, ExplainedIsZeroForTheMean) {
  const ValueScore mean{.mean_squared_error = 0.25, .target_variance = 0.25};
  const ValueScore half{.mean_squared_error = 0.125, .target_variance = 0.25};
  const ValueScore alike{.mean_squared_error = 0.125, .target_variance = 0};

  EXPECT_DOUBLE_EQ(*mean.explained(), 0);
  EXPECT_DOUBLE_EQ(*half.explained(), 0.5);
  EXPECT_FALSE(alike.explained());
}

/// Two values with known predictions and targets, put straight into the engine's memory.
TEST(Scores, AreThoseOfTheDefinition) {
  model::GraphBuilder builder("identity", 3, {.n = 2, .c = 2, .d = 1, .h = 1, .w = 1});
  builder.add("scale", model::Scale{1});
  const model::Graph graph = builder.finish({{{model::LossKind::mean_squared_error, 2}}});
  engine::Engine engine =
      test::small_engine(graph, {.mode = schedule::Mode::evaluate, .update = false, .keep_output = true});
  const std::vector<float> predicted{1, 2, 3, 4};
  const std::vector<float> wanted{0, 4, 3, 0};
  std::copy(predicted.begin(), predicted.end(), engine.floats(engine.schedule().inputs.front().buffer).begin());
  std::copy(wanted.begin(), wanted.end(), engine.floats(engine.schedule().targets.front().buffer).begin());
  engine.run({.step = 1, .seed = 0, .learning_rate = 0});
  ScoreSums sums(graph);

  sums.add(engine, {.first = 0, .samples = 2});

  const Scores scores = sums.total(test::alone());
  EXPECT_DOUBLE_EQ(scores.mean_squared_error, (1 + 4 + 0 + 16) / 4.0);
  EXPECT_DOUBLE_EQ(scores.mean_absolute_error, (1 + 2 + 0 + 4) / 4.0);
  EXPECT_DOUBLE_EQ(scores.loss, 2 * scores.mean_squared_error);
  EXPECT_DOUBLE_EQ(scores.channels[0].mean_squared_error, 0.5);
  EXPECT_DOUBLE_EQ(scores.channels[1].mean_absolute_error, 3);
  EXPECT_DOUBLE_EQ(scores.channels[0].target_mean, 1.5);
  EXPECT_DOUBLE_EQ(scores.channels[1].target_variance, 4);
  EXPECT_EQ(csv_header(scores), "loss,mean_squared_error,mean_absolute_error,mse_0,mae_0,mse_1,mae_1");
  EXPECT_EQ(csv_row(scores), "10.5,5.25,1.75,0.5,0.5,10,3");
}

TEST(Scores, AClassThatIsNowhereHasNoDice) {
  model::GraphBuilder builder("identity", 3, {.n = 1, .c = 3, .d = 1, .h = 1, .w = 4});
  builder.add("scale", model::Scale{1});
  const model::Graph graph = builder.finish({{{model::LossKind::cross_entropy, 1}}});
  engine::Engine engine =
      test::small_engine(graph, {.mode = schedule::Mode::evaluate, .update = false, .keep_output = true});
  const std::vector<float> predicted{9, 0, 0, 9, 0, 0, 0, 9, 0, 0, 9, 0};
  const std::vector<std::int32_t> wanted{0, 1, 1, 1};
  std::copy(predicted.begin(), predicted.end(), engine.floats(engine.schedule().inputs.front().buffer).begin());
  std::copy(wanted.begin(), wanted.end(), engine.labels(engine.schedule().targets.front().buffer).begin());
  engine.run({.step = 1, .seed = 0, .learning_rate = 0});
  ScoreSums sums(graph);

  sums.add(engine, {.first = 0, .samples = 1});

  const Scores scores = sums.total(test::alone());
  EXPECT_DOUBLE_EQ(scores.accuracy, 0.75);
  EXPECT_DOUBLE_EQ(*scores.dice[0], 2.0 / 3);
  EXPECT_DOUBLE_EQ(*scores.dice[1], 4.0 / 5);
  EXPECT_FALSE(scores.dice[2]);
  EXPECT_DOUBLE_EQ(scores.mean_dice, (2.0 / 3 + 4.0 / 5) / 2);
  EXPECT_NEAR(scores.loss, engine.losses().back(), 1e-9);
  EXPECT_TRUE(to_json(scores).at("dice").at(2).is_null());
}

}  // namespace
}  // namespace orthant::train
