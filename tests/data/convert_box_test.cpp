#include "orthant/data/arrays/convert_box.hpp"

#include "orthant/base/random.hpp"
#include "tests/data/temporary.hpp"

#include <cstring>
#include <numeric>

namespace orthant {
namespace {

using tensor::Box;
using tensor::Dim;
using tensor::Shape;

/// A stored tensor in memory whose items count up in the file's order.
struct Source {
  Source(const Shape& shape, bool channels_last, bool big_endian)
      : stored{.type = data::arrays::NumberType::i16,
               .big_endian = big_endian,
               .layout = channels_last ? tensor::channels_last(shape) : tensor::channels_first(shape)},
        bytes(static_cast<std::size_t>(2 * tensor::volume(shape))) {
    for (std::size_t i = 0; i < bytes.size() / 2; ++i) {
      const auto low = static_cast<std::byte>(i & 255U);
      const auto high = static_cast<std::byte>(i >> 8U);
      bytes[2 * i] = big_endian ? high : low;
      bytes[2 * i + 1] = big_endian ? low : high;
    }
  }

  [[nodiscard]] std::int64_t item(std::int64_t n, std::int64_t c, std::int64_t d, std::int64_t h,
                                  std::int64_t w) const {
    const Shape& s = stored.layout.strides;
    return n * s.n + c * s.c + d * s.d + h * s.h + w * s.w;
  }

  data::arrays::Stored stored;
  std::vector<std::byte> bytes;
  std::int64_t fetched = 0;
};

data::arrays::Fetch fetch_from(Source& source) {
  return [&source](std::int64_t first, std::int64_t bytes, std::byte*) {
    source.fetched += bytes;
    return std::span<const std::byte>(source.bytes)
        .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(bytes));
  };
}

Box random_box(const Shape& shape, std::uint64_t key) {
  Box box;
  for (const Dim dim : tensor::all_dims) {
    const auto d = static_cast<std::uint64_t>(dim);
    const auto extent = static_cast<std::uint64_t>(shape[dim]);
    std::uint64_t lo = base::keyed(key, 2 * d) % extent;
    std::uint64_t count = 1 + base::keyed(key, 2 * d + 1) % (extent - lo);
    if (base::keyed(key, 100 + d) % 3 == 0) lo = 0, count = extent;
    box.set(dim, {static_cast<std::int64_t>(lo), static_cast<std::int64_t>(lo + count)});
  }
  return box;
}

TEST(ConvertBox, TakesAnyBoxInAnyOrder) {
  const Shape shape{.n = 2, .c = 3, .d = 5, .h = 6, .w = 7};
  for (std::uint64_t key = 0; key < 400; ++key) {
    SCOPED_TRACE(key);
    Source source(shape, key % 2 == 0, key % 4 < 2);
    const Box box = random_box(shape, key);
    const tensor::Layout dense = tensor::channels_last(tensor::extents_of(box));
    tensor::Layout to = dense;
    if (key % 3 == 0) to.strides = tensor::channels_last({.n = 2, .c = 5, .d = 9, .h = 9, .w = 9}).strides;
    std::vector<float> into(2 * 5 * 9 * 9 * 9, -1);

    ASSERT_FALSE(data::arrays::convert_box(source.stored, box, fetch_from(source), to, into.data()));

    std::int64_t written = 0;
    for (std::int64_t n = box.lo.n; n < box.hi.n; ++n)
      for (std::int64_t c = box.lo.c; c < box.hi.c; ++c)
        for (std::int64_t d = box.lo.d; d < box.hi.d; ++d)
          for (std::int64_t h = box.lo.h; h < box.hi.h; ++h)
            for (std::int64_t w = box.lo.w; w < box.hi.w; ++w, ++written) {
              const std::int64_t at = (n - box.lo.n) * to.strides.n + (c - box.lo.c) * to.strides.c +
                                      (d - box.lo.d) * to.strides.d + (h - box.lo.h) * to.strides.h +
                                      (w - box.lo.w) * to.strides.w;
              ASSERT_EQ(into[static_cast<std::size_t>(at)], static_cast<float>(source.item(n, c, d, h, w)));
            }
    EXPECT_EQ(std::count(into.begin(), into.end(), -1.0F), static_cast<std::ptrdiff_t>(into.size()) - written);
    const bool whole_pixels = key % 2 == 0;
    const std::int64_t fetched_items = whole_pixels ? written / (box.hi.c - box.lo.c) * shape.c : written;
    EXPECT_EQ(source.fetched, 2 * fetched_items);
  }
}

/// Large enough for pieces, and for stores past the caches.
TEST(ConvertBox, TakesLargeBoxes) {
  for (const bool channels_last : {true, false}) {
    for (const std::int64_t channels : {1, 3, 4}) {
      const Shape shape{.n = 1, .c = channels, .d = 23, .h = 301, .w = 307};
      Source source(shape, channels_last, false);
      Box box = tensor::whole(shape);
      box.lo.d = channels == 3 ? 0 : 1;
      std::vector<float> into(static_cast<std::size_t>(tensor::volume(box)) + 1, -1);

      ASSERT_FALSE(data::arrays::convert_box(source.stored, box, fetch_from(source),
                                             tensor::channels_last(tensor::extents_of(box)), into.data() + 1));

      std::size_t at = 1;
      bool equal = into[0] == -1;
      for (std::int64_t d = box.lo.d; d < box.hi.d; ++d)
        for (std::int64_t h = 0; h < shape.h; ++h)
          for (std::int64_t w = 0; w < shape.w; ++w)
            for (std::int64_t c = 0; c < channels; ++c)
              equal &= into[at++] == static_cast<float>(static_cast<std::int16_t>(source.item(0, c, d, h, w)));
      EXPECT_TRUE(equal) << channels_last << channels;
    }
  }
}

TEST(ConvertBox, NamesWhereABadItemIs) {
  for (const std::int64_t channels : {3, 4}) {
    const Shape shape{.n = 2, .c = channels, .d = 4, .h = 5, .w = 6};
    const Shape bad{.n = 1, .c = 2, .d = 3, .h = 1, .w = 4};
    for (const bool channels_last : {true, false}) {
      for (const Box& box :
           {tensor::whole(shape), Box{.lo = {1, channels - 2, 2, 1, 3}, .hi = {2, channels, 4, 4, 6}}}) {
        Source source(shape, channels_last, false);
        std::fill(source.bytes.begin(), source.bytes.end(), std::byte{0});
        const std::int64_t item = source.item(bad.n, bad.c, bad.d, bad.h, bad.w);
        source.bytes[static_cast<std::size_t>(2 * item + 1)] = std::byte{0x7C};
        std::vector<float> into(static_cast<std::size_t>(tensor::volume(shape)));
        std::vector<std::int32_t> labels(into.size());
        const tensor::Layout to = tensor::channels_last(tensor::extents_of(box));

        source.stored.type = data::arrays::NumberType::f16;
        const auto infinite = data::arrays::convert_box(source.stored, box, fetch_from(source), to, into.data());
        source.stored.type = data::arrays::NumberType::i16;
        const auto label =
            data::arrays::convert_labels(source.stored, box, fetch_from(source), to, labels.data(), 0x7C00);

        ASSERT_TRUE(infinite && label);
        EXPECT_EQ(infinite->at, bad);
        EXPECT_EQ(label->at, bad);
        EXPECT_EQ(label->value, 0x7C00);
        EXPECT_FALSE(data::arrays::convert_labels(source.stored, box, fetch_from(source), to, labels.data(), 0x7C01));
      }
    }
  }
}

}  // namespace
}  // namespace orthant
