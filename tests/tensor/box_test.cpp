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

}  // namespace
}  // namespace orthant::tensor
