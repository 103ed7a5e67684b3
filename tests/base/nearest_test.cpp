#include "orthant/base/nearest.hpp"

#include <gtest/gtest.h>

namespace orthant::base {
namespace {

const std::vector<std::string> known{"learning_rate", "momentum", "weight_decay", "steps", "seed"};

TEST(Nearest, FindsTypos) {
  EXPECT_EQ(nearest("learning_rat", known), "learning_rate");
  EXPECT_EQ(nearest("learnign_rate", known), "learning_rate");
  EXPECT_EQ(nearest("momentun", known), "momentum");
  EXPECT_EQ(nearest("weigth_decay", known), "weight_decay");
  EXPECT_EQ(nearest("step", known), "steps");
  EXPECT_EQ(nearest("sed", known), "seed");
}

TEST(Nearest, FindsTheWordItself) {
  for (const std::string& word : known) EXPECT_EQ(nearest(word, known), word);
}

TEST(Nearest, IsSilentWhereNothingIsClose) {
  EXPECT_EQ(nearest("optimizer", known), "");
  EXPECT_EQ(nearest("zzzzzzzz", known), "");
  EXPECT_EQ(nearest("steps", {}), "");
}

TEST(Nearest, PrefersTheClosest) {
  const std::vector<std::string> close{"resnet152", "resnet50", "resnet18"};
  EXPECT_EQ(nearest("resnet51", close), "resnet50");
  EXPECT_EQ(nearest("resnet15", close), "resnet152");
}

TEST(Suggestion, NamesTheNearestOrAllThatIsKnown) {
  EXPECT_EQ(suggestion("momentim", known), "; did you mean 'momentum'?");
  EXPECT_EQ(suggestion("optimizer", known), "; known are: learning_rate, momentum, weight_decay, steps, seed");
}

}  // namespace
}  // namespace orthant::base
