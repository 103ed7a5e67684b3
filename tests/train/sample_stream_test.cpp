#include "orthant/train/sample_stream.hpp"

#include <gtest/gtest.h>

#include <set>

namespace orthant::train {
namespace {

const data::sets::SampleShape shape{.input = {1, 1, 4, 4, 4}, .target = {1, 1, 1, 1, 1}};

TEST(SampleStream, HasEverySampleOnceInEveryEpoch) {
  SampleStream stream(shape, 7, {.shuffle = true, .seed = 5});
  std::set<std::vector<std::int64_t>> orders;

  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < 7; ++i) {
      const Draw draw = stream.at(epoch * 7 + i);
      EXPECT_EQ(draw.epoch, epoch);
      order.push_back(draw.sample);
    }
    EXPECT_EQ(order, stream.order(epoch));
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 7U);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 5U);
}

TEST(SampleStream, DependsOnTheSeedAlone) {
  SampleStream once(shape, 50, {.shuffle = true, .seed = 5});
  SampleStream again(shape, 50, {.shuffle = true, .seed = 5});
  SampleStream other(shape, 50, {.shuffle = true, .seed = 6});
  // Forwards and backwards, as mini-batches that meet two epochs may be asked for.
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(once.at(i).sample, again.at(i).sample);
  for (std::int64_t i = 99; i >= 0; --i) EXPECT_EQ(once.at(i).sample, again.at(i).sample);
  EXPECT_NE(once.order(0), other.order(0));
}

TEST(SampleStream, KeepsTheOrderOfTheDataWithoutShuffling) {
  SampleStream stream(shape, 3, {});
  for (std::int64_t i = 0; i < 9; ++i) EXPECT_EQ(stream.at(i).sample, i % 3);
}

}  // namespace
}  // namespace orthant::train
