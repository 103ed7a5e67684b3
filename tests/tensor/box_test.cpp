#include "orthant/tensor/box.hpp"

#include <gtest/gtest.h>

namespace orthant::tensor {
namespace {

TEST(Box, WholeCoversTheShape) {
  const Shape shape{.n = 2, .c = 3, .d = 5, .h = 7, .w = 11};
  EXPECT_EQ(whole(shape).lo, (Shape{0, 0, 0, 0, 0}));
  EXPECT_EQ(extents_of(whole(shape)), shape);
}

TEST(Box, ExtentsAreDifferences) {
  const Box box{.lo = {1, 2, 3, 4, 5}, .hi = {2, 4, 6, 8, 5}};
  EXPECT_EQ(extents_of(box), (Shape{1, 2, 3, 4, 0}));
  EXPECT_EQ(volume(extents_of(box)), 0);
}

TEST(Box, IntersectionIsWhatBothHold) {
  const Box a{.lo = {0, 0, 0, 0, 0}, .hi = {4, 4, 4, 4, 4}};
  const Box b{.lo = {1, 2, 3, 0, 0}, .hi = {5, 6, 7, 8, 2}};
  EXPECT_EQ(intersection(a, b), (Box{.lo = {1, 2, 3, 0, 0}, .hi = {4, 4, 4, 4, 2}}));
  EXPECT_EQ(intersection(a, {.lo = {0, 0, 0, 0, 4}, .hi = {4, 4, 4, 4, 8}}), Box{});
  EXPECT_EQ(volume(Box{.lo = {0, 0, 0, 0, 3}, .hi = {1, 1, 1, 1, 2}}), 0);
}

TEST(Box, BoundingHoldsBoth) {
  const Box a{.lo = {0, 0, 0, 0, 0}, .hi = {1, 1, 1, 1, 1}};
  const Box b{.lo = {2, 0, 0, 0, 5}, .hi = {3, 2, 1, 1, 6}};
  EXPECT_EQ(bounding(a, b), (Box{.lo = {0, 0, 0, 0, 0}, .hi = {3, 2, 1, 1, 6}}));
  EXPECT_EQ(bounding(a, Box{.lo = {9, 9, 9, 9, 9}, .hi = {9, 10, 10, 10, 10}}), a);
  EXPECT_TRUE(contains(bounding(a, b), b));
  EXPECT_FALSE(contains(a, b));
  EXPECT_TRUE(contains(a, Box{}));
}

TEST(Box, RelativeCountsFromTheOrigin) {
  EXPECT_EQ(relative({.lo = {1, 2, 3, 4, 5}, .hi = {2, 4, 6, 8, 10}}, {1, 1, 1, 1, 1}),
            (Box{.lo = {0, 1, 2, 3, 4}, .hi = {1, 3, 5, 7, 9}}));
}

}  // namespace
}  // namespace orthant::tensor
