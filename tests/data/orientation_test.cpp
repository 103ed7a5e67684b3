#include "orthant/data/sets/orientation.hpp"

#include "orthant/tensor/distribution.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace orthant {
namespace {

using data::sets::Augmentation;
using data::sets::Orientation;
using data::sets::SampleShape;
using tensor::Box;
using tensor::Shape;

constexpr SampleShape cube{.input = {.n = 1, .c = 2, .d = 5, .h = 5, .w = 5},
                           .target = {.n = 1, .c = 1, .d = 5, .h = 5, .w = 5}};
constexpr Augmentation all{.flip = {true, true, true}, .permute = true};

/// The turned sample by its definition, dense and channels-last.
std::vector<float> turned_whole(const Orientation& orientation, const Shape& shape, const std::vector<float>& sample) {
  std::vector<float> turned;
  for (std::int64_t d = 0; d < shape.d; ++d)
    for (std::int64_t h = 0; h < shape.h; ++h)
      for (std::int64_t w = 0; w < shape.w; ++w)
        for (std::int64_t c = 0; c < shape.c; ++c) {
          const std::array<std::int64_t, 3> at{d, h, w};
          const std::array<std::int64_t, 3> extents{shape.d, shape.h, shape.w};
          std::array<std::int64_t, 3> from{};
          for (std::size_t i = 0; i < 3; ++i)
            from.at(static_cast<std::size_t>(orientation.from.at(i))) =
                orientation.flipped.at(i) ? extents.at(i) - 1 - at.at(i) : at.at(i);
          turned.push_back(
              sample[static_cast<std::size_t>(((from[0] * shape.h + from[1]) * shape.w + from[2]) * shape.c + c)]);
        }
  return turned;
}

std::vector<float> part(const std::vector<float>& whole, const Shape& shape, const Box& box) {
  std::vector<float> items;
  for (std::int64_t d = box.lo.d; d < box.hi.d; ++d)
    for (std::int64_t h = box.lo.h; h < box.hi.h; ++h)
      for (std::int64_t w = box.lo.w; w < box.hi.w; ++w)
        for (std::int64_t c = box.lo.c; c < box.hi.c; ++c)
          items.push_back(whole[static_cast<std::size_t>(((d * shape.h + h) * shape.w + w) * shape.c + c)]);
  return items;
}

TEST(Orientation, EveryCutGivesTheTurnedSample) {
  for (const SampleShape& shape :
       {cube, SampleShape{.input = {.n = 1, .c = 3, .d = 4, .h = 6, .w = 4}, .target = {.n = 1, .c = 2}}}) {
    std::vector<float> sample(static_cast<std::size_t>(tensor::volume(shape.input)));
    std::iota(sample.begin(), sample.end(), 0.0F);
    for (std::int64_t key = 0; key < 60; ++key) {
      const Orientation orientation = data::sets::orientation_of(all, {.seed = 1, .epoch = key, .sample = 3}, shape);
      const std::vector<float> whole = turned_whole(orientation, shape.input, sample);
      for (const tensor::Grid grid :
           {tensor::Grid{}, tensor::Grid{.d = 3}, tensor::Grid{.d = 2, .h = 2}, tensor::Grid{.c = 2, .w = 3}}) {
        for (int rank = 0; rank < tensor::parts(grid); ++rank) {
          const Box box = tensor::owned_box({.global = shape.input, .grid = grid}, rank);
          const std::vector<float> source =
              part(sample, shape.input, data::sets::source_box(orientation, box, shape.input));
          std::vector<float> into(source.size());
          data::sets::turn<float>(orientation, source, tensor::channels_last(tensor::extents_of(box)), into);
          ASSERT_EQ(into, part(whole, shape.input, box));
        }
      }
    }
  }
}

TEST(Orientation, IsAFunctionOfSeedEpochAndSample) {
  const Orientation first = data::sets::orientation_of(all, {.seed = 1, .epoch = 2, .sample = 3}, cube);

  EXPECT_EQ(data::sets::orientation_of(all, {.seed = 1, .epoch = 2, .sample = 3}, cube), first);
  int same = 0;
  for (std::int64_t i = 10; i < 50; ++i)
    same += data::sets::orientation_of(all, {.seed = 1, .epoch = i, .sample = 3}, cube) == first ? 1 : 0;
  EXPECT_LT(same, 8);
}

TEST(Orientation, UsesAllOfThemAlike) {
  std::map<std::pair<std::array<int, 3>, std::array<bool, 3>>, int> seen;
  for (std::int64_t sample = 0; sample < 4800; ++sample) {
    const Orientation o = data::sets::orientation_of(all, {.seed = 5, .epoch = 0, .sample = sample}, cube);
    ++seen[{o.from, o.flipped}];
  }

  EXPECT_EQ(seen.size(), 48U);
  for (const auto& [orientation, count] : seen) EXPECT_NEAR(count, 100, 50);
}

TEST(Orientation, TurnsOnlyWhatIsAllowed) {
  const SampleShape flat{.input = {.n = 1, .c = 1, .d = 1, .h = 6, .w = 6}, .target = {.n = 1, .c = 1}};
  const SampleShape uneven{.input = {.n = 1, .c = 1, .d = 6, .h = 6, .w = 6},
                           .target = {.n = 1, .c = 1, .d = 6, .h = 3, .w = 6}};
  std::set<std::array<int, 3>> flat_orders;
  std::set<std::array<int, 3>> uneven_orders;
  for (std::int64_t i = 0; i < 100; ++i) {
    const data::sets::OrientationKey key{.seed = 1, .epoch = i, .sample = 0};
    flat_orders.insert(data::sets::orientation_of(all, key, flat).from);
    EXPECT_FALSE(data::sets::orientation_of(all, key, flat).flipped[0]);
    uneven_orders.insert(data::sets::orientation_of(all, key, uneven).from);
    EXPECT_EQ(data::sets::orientation_of({}, key, cube), Orientation{});
    const Orientation flips = data::sets::orientation_of({.flip = {false, true, false}}, key, cube);
    EXPECT_EQ(flips.from, Orientation{}.from);
    EXPECT_FALSE(flips.flipped[0] || flips.flipped[2]);
  }

  EXPECT_EQ(flat_orders, (std::set<std::array<int, 3>>{{0, 1, 2}, {0, 2, 1}}));
  EXPECT_EQ(uneven_orders, (std::set<std::array<int, 3>>{{0, 1, 2}, {2, 1, 0}}));
}

TEST(Orientation, LeavesSinglePixelsAlone) {
  const Box box{.lo = {0, 1, 0, 0, 0}, .hi = {1, 3, 1, 1, 1}};

  EXPECT_EQ(data::sets::source_box({.from = {2, 0, 1}, .flipped = {true, true, true}}, box, {.n = 1, .c = 4}), box);
}

}  // namespace
}  // namespace orthant
