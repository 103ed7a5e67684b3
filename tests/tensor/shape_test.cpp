#include "orthant/tensor/shape.hpp"

#include "orthant/base/error.hpp"

#include <gtest/gtest.h>

namespace orthant::tensor {
namespace {

TEST(Shape, IsIndexedByDim) {
  Shape shape{.n = 2, .c = 3, .d = 5, .h = 7, .w = 11};
  EXPECT_EQ(shape[Dim::n], 2);
  EXPECT_EQ(shape[Dim::c], 3);
  EXPECT_EQ(shape[Dim::d], 5);
  EXPECT_EQ(shape[Dim::h], 7);
  EXPECT_EQ(shape[Dim::w], 11);
  for (const Dim dim : all_dims) shape[dim] = 1;
  EXPECT_EQ(shape, Shape{});
}

TEST(Shape, CountsItemsAndPixels) {
  const Shape shape{.n = 2, .c = 3, .d = 5, .h = 7, .w = 11};
  EXPECT_EQ(volume(shape), 2310);
  EXPECT_EQ(pixels(shape), 770);
  EXPECT_EQ(spatial(shape), (Extent3{5, 7, 11}));
}

TEST(Shape, RefusesVolumesThatOverflow) {
  const std::int64_t large = std::int64_t{1} << 32;
  EXPECT_THROW(static_cast<void>(volume({.n = large, .c = large})), base::Error);
  EXPECT_THROW(static_cast<void>(pixels({.d = large, .h = large})), base::Error);
}

TEST(Shape, PrintsWithAndWithoutDepth) {
  const Shape shape{.n = 2, .c = 16, .d = 1, .h = 8, .w = 9};
  EXPECT_EQ(to_text(shape), "2x16x1x8x9");
  EXPECT_EQ(to_text(shape, 2), "2x16x8x9");
}

TEST(Extent3, IsIndexedByDim) {
  Extent3 extent{2, 3, 4};
  EXPECT_EQ(extent[Dim::d], 2);
  EXPECT_EQ(extent[Dim::h], 3);
  EXPECT_EQ(extent[Dim::w], 4);
  extent[Dim::h] = 9;
  EXPECT_EQ(extent, (Extent3{2, 9, 4}));
  EXPECT_EQ(cube(3), (Extent3{3, 3, 3}));
  EXPECT_EQ(square(3), (Extent3{1, 3, 3}));
}

TEST(Dim, HasItsLetter) {
  std::string letters;
  for (const Dim dim : all_dims) letters += name_of(dim);
  EXPECT_EQ(letters, "ncdhw");
}

}  // namespace
}  // namespace orthant::tensor
