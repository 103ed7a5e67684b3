#include "orthant/model/traits.hpp"

#include "orthant/tensor/distribution.hpp"
#include "orthant/tensor/window_boxes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orthant::model {
namespace {

using tensor::Box;
using tensor::Dim;
using tensor::Range;
using tensor::Window;

constexpr std::int64_t cells = 24;

Window line(std::int64_t taps, std::int64_t stride, std::int64_t dilation, std::int64_t pad) {
  return {.size = {1, 1, taps},
          .stride = {1, 1, stride},
          .dilation = {1, 1, dilation},
          .pad_lo = {0, 0, pad},
          .pad_hi = {0, 0, pad}};
}

/// What a rank reads beyond its own block of a line of `src` cells for its block of `dst`, on the side where it is
/// more.
template <class Read>
std::int64_t widest(std::int64_t src, std::int64_t dst, int parts, Read read) {
  std::int64_t width = 0;
  for (int part = 0; part < parts; ++part) {
    Box box = tensor::whole({.n = 1, .c = 1, .d = 1, .h = 1, .w = dst});
    box.set(Dim::w, {tensor::block_begin(dst, parts, part), tensor::block_begin(dst, parts, part + 1)});
    const Range wanted = read(box)[Dim::w];
    const Range own{tensor::block_begin(src, parts, part), tensor::block_begin(src, parts, part + 1)};
    width = std::max({width, own.lo - wanted.lo, wanted.hi - own.hi});
  }
  return width;
}

/// The formula is what the boxes that are exchanged come to, wherever src and dst are cut at the same places.
TEST(Traits, HaloWidthIsWhatBoxesReach) {
  for (const std::int64_t taps : {1, 2, 3, 5}) {
    for (const std::int64_t stride : {1, 2}) {
      for (const std::int64_t dilation : {1, 2}) {
        const std::int64_t reach = dilation * (taps - 1) + 1;
        const std::int64_t pad = (reach - 1) / 2;
        const Window window = line(taps, stride, dilation, pad);
        const tensor::Shape src{.n = 1, .c = 1, .d = 1, .h = 1, .w = cells};
        const std::int64_t count = (cells + 2 * pad - reach) / stride + 1;
        const tensor::Shape dst{.n = 1, .c = 1, .d = 1, .h = 1, .w = count};
        if (count * stride != cells) continue;
        EXPECT_EQ(widest(cells, count, 2, [&](const Box& box) { return tensor::cells_read(window, box, src, dst); }),
                  std::max<std::int64_t>(0, halo_width(UnderWindow{window}, Dim::w)))
            << taps << " taps, stride " << stride << ", dilation " << dilation;
      }
    }
  }
}

TEST(Traits, TransposedHaloWidthIsAtLeastWhatBoxesReach) {
  for (const std::int64_t taps : {1, 2, 3, 5}) {
    for (const std::int64_t stride : {1, 2, 3}) {
      const Window window = line(taps, stride, 1, 0);
      const std::int64_t dst = (cells - 1) * stride + taps;
      const tensor::Shape src{.n = 1, .c = 1, .d = 1, .h = 1, .w = cells};
      EXPECT_LE(widest(cells, dst, 2, [&](const Box& box) { return tensor::cells_reading(window, box, src); }),
                halo_width(UnderTransposedWindow{window, {}}, Dim::w) + 1)
          << taps << " taps, stride " << stride;
    }
  }
}

TEST(Traits, CellwiseOpsReadTheSameCellAndChannel) {
  for (const Op& op : {Op{BatchNorm{}}, Op{Activation{}}, Op{Scale{}}, Op{Dropout{}}, Op{Add{}}})
    EXPECT_TRUE(is_cellwise(traits_of(op))) << name_of(op);
  for (const Op& op : {Op{Input{}}, Op{Conv{}}, Op{ConvTranspose{}}, Op{Pool{}}, Op{GlobalAveragePool{}}, Op{Dense{}},
                       Op{Softmax{}}, Op{Concat{}}, Op{Flatten{}}})
    EXPECT_FALSE(is_cellwise(traits_of(op))) << name_of(op);
}

TEST(Traits, OpsWithWindowsHaveThem) {
  const Window window = line(3, 1, 1, 1);
  for (const Op& op : {Op{Conv{.window = window}}, Op{ConvTranspose{.window = window}}, Op{Pool{.window = window}}}) {
    const OpTraits traits = traits_of(op);
    ASSERT_NE(window_of(traits.reads), nullptr) << name_of(op);
    EXPECT_EQ(*window_of(traits.reads), window) << name_of(op);
  }
  EXPECT_EQ(window_of(traits_of(Dense{}).reads), nullptr);
}

}  // namespace
}  // namespace orthant::model
