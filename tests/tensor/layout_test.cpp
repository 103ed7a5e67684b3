#include "orthant/tensor/layout.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace orthant::tensor {
namespace {

const std::vector<Shape> shapes{{1, 1, 1, 1, 1}, {2, 3, 4, 5, 6}, {1, 16, 1, 7, 7}, {3, 1, 5, 1, 2}, {1, 1, 1, 1, 9}};

/// The place of every item, in the order n, c, d, h, w.
std::vector<std::int64_t> places(const Layout& layout) {
  std::vector<std::int64_t> all;
  const Shape& e = layout.extents;
  const Shape& s = layout.strides;
  for (std::int64_t n = 0; n < e.n; ++n) {
    for (std::int64_t c = 0; c < e.c; ++c) {
      for (std::int64_t d = 0; d < e.d; ++d) {
        for (std::int64_t h = 0; h < e.h; ++h) {
          for (std::int64_t w = 0; w < e.w; ++w)
            all.push_back(layout.offset + n * s.n + c * s.c + d * s.d + h * s.h + w * s.w);
        }
      }
    }
  }
  return all;
}

TEST(Layout, PackedLayoutsUseEveryPlaceOnce) {
  for (const Shape& shape : shapes) {
    for (const Layout& layout : {channels_last(shape), channels_first(shape)}) {
      const std::vector<std::int64_t> all = places(layout);
      const std::set<std::int64_t> distinct(all.begin(), all.end());
      EXPECT_EQ(static_cast<std::int64_t>(distinct.size()), volume(shape)) << to_text(shape);
      EXPECT_EQ(*distinct.begin(), 0);
      EXPECT_EQ(*distinct.rbegin(), volume(shape) - 1);
    }
  }
}

TEST(Layout, ChannelsAreFastestOrSlowest) {
  const Shape shape{2, 3, 4, 5, 6};
  EXPECT_EQ(channels_last(shape).strides, (Shape{.n = 360, .c = 1, .d = 90, .h = 18, .w = 3}));
  EXPECT_EQ(channels_first(shape).strides, (Shape{.n = 360, .c = 120, .d = 30, .h = 6, .w = 1}));
}

TEST(Layout, ChannelRangesTileTheWhole) {
  for (const Shape& shape : shapes) {
    const Layout all = channels_last(shape);
    for (std::int64_t cut = 0; cut <= shape.c; ++cut) {
      std::set<std::int64_t> seen;
      for (const Layout& part : {channel_range(all, 0, cut), channel_range(all, cut, shape.c - cut)}) {
        for (const std::int64_t place : places(part)) EXPECT_TRUE(seen.insert(place).second);
      }
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), volume(shape));
    }
  }
}

TEST(Layout, ChannelRangeOfARangeIsARange) {
  const Layout all = channels_last({2, 10, 3, 2, 2});
  EXPECT_EQ(channel_range(channel_range(all, 2, 7), 3, 2), channel_range(all, 5, 2));
}

TEST(Layout, KnowsDenseFromStrided) {
  for (const Shape& shape : shapes) EXPECT_TRUE(is_dense(channels_last(shape))) << to_text(shape);
  Layout shifted = channels_last({2, 3, 4, 5, 6});
  shifted.offset = 7;
  EXPECT_TRUE(is_dense(shifted));
  EXPECT_FALSE(is_dense(channels_first({2, 3, 4, 5, 6})));
  EXPECT_FALSE(is_dense(channel_range(channels_last({2, 3, 4, 5, 6}), 0, 2)));
  EXPECT_TRUE(is_dense(channels_first({2, 3, 1, 1, 1})));
  EXPECT_TRUE(is_dense(channels_first({2, 1, 4, 5, 6})));
}

TEST(Layout, StridesOfSingleItemsDoNotMatter) {
  Layout layout = channels_last({1, 8, 1, 5, 6});
  layout.strides.n = 12345;
  layout.strides.d = 1;
  EXPECT_TRUE(is_dense(layout));
  EXPECT_TRUE(is_pixel_list(layout));
}

TEST(Layout, ChannelRangesArePixelLists) {
  const Layout part = channel_range(channels_last({2, 16, 4, 5, 6}), 3, 5);
  EXPECT_TRUE(is_pixel_list(part));
  EXPECT_FALSE(is_dense(part));
}

TEST(Layout, InteriorsOfHaloedTensorsAreNotPixelLists) {
  Layout interior = channels_last({1, 4, 6, 6, 6});
  interior.extents = {1, 4, 6, 4, 6};
  EXPECT_FALSE(is_pixel_list(interior));
  interior.extents = {1, 4, 4, 6, 6};
  EXPECT_TRUE(is_pixel_list(interior));  // a depth slab of one sample
  interior = channels_last({2, 4, 6, 6, 6});
  interior.extents = {2, 4, 4, 6, 6};
  EXPECT_FALSE(is_pixel_list(interior));  // but not of two
}

}  // namespace
}  // namespace orthant::tensor
