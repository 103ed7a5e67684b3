#include "orthant/schedule/byte_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace orthant::schedule {
namespace {

using tensor::Layout;
using tensor::Range;

/// The same by listing every byte.
using Listed = std::set<std::int64_t>;

Listed list_bytes(const Layout& layout, std::int64_t item_bytes, std::int64_t first_byte) {
  Listed bytes;
  tensor::Shape i;
  for (i.n = 0; i.n < layout.extents.n; ++i.n) {
    for (i.c = 0; i.c < layout.extents.c; ++i.c) {
      for (i.d = 0; i.d < layout.extents.d; ++i.d) {
        for (i.h = 0; i.h < layout.extents.h; ++i.h) {
          for (i.w = 0; i.w < layout.extents.w; ++i.w) {
            std::int64_t item = layout.offset;
            for (const tensor::Dim dim : tensor::all_dims) item += i[dim] * layout.strides[dim];
            for (std::int64_t b = 0; b < item_bytes; ++b) bytes.insert(first_byte + item * item_bytes + b);
          }
        }
      }
    }
  }
  return bytes;
}

bool has_all(const Listed& set, const Listed& wanted) {
  return std::includes(set.begin(), set.end(), wanted.begin(), wanted.end());
}

bool has_some(const Listed& set, const Listed& other) {
  return std::any_of(other.begin(), other.end(), [&](std::int64_t byte) { return set.contains(byte); });
}

/// A box of a small tensor in one of two orders, or a range of its bytes.
struct Draw {
  std::mt19937 random;

  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  }
  Layout layout(const tensor::Shape& whole) {
    tensor::Box box;
    for (const tensor::Dim dim : tensor::all_dims) {
      const std::int64_t lo = pick(0, whole[dim] - 1);
      box.set(dim, {lo, pick(0, 2) == 0 ? whole[dim] : pick(lo + 1, whole[dim])});
    }
    return tensor::box_of(pick(0, 4) == 0 ? tensor::channels_first(whole) : tensor::channels_last(whole), box);
  }
};

TEST(ByteSet, DoesWhatListsOfBytesDo) {
  Draw draw{std::mt19937(1)};
  for (int round = 0; round < 2000; ++round) {
    const tensor::Shape whole{draw.pick(1, 2), draw.pick(1, 4), draw.pick(1, 3), draw.pick(1, 3), draw.pick(1, 4)};
    const std::int64_t first = draw.pick(0, 2) == 0 ? draw.pick(0, 40) : 0;
    const std::int64_t most = tensor::volume(whole) * 4 + first;
    std::int64_t period = period_of(draw.layout(whole), 4);
    if (period == 0) period = draw.pick(1, most);
    ByteSet set(period);
    Listed listed;
    for (int i = 0; i < 6; ++i) {
      const Layout layout = draw.layout(whole);
      const bool is_range = draw.pick(0, 2) == 0;
      const std::int64_t lo = draw.pick(0, most - 1);
      const Range range{lo, draw.pick(lo, most)};
      Listed other;
      for (std::int64_t b = range.lo; is_range && b < range.hi; ++b) other.insert(b);
      if (!is_range) other = list_bytes(layout, 4, first);
      const ByteSet one = is_range ? ByteSet(period, range) : ByteSet(period, layout, 4, first);

      const Range missing = set.missing(one);
      EXPECT_EQ(missing == Range{}, has_all(listed, other));
      EXPECT_TRUE(missing == Range{} || (other.contains(missing.lo) && !listed.contains(missing.lo)));
      const Range common = set.common(one);
      EXPECT_EQ(common != Range{}, has_some(listed, other));
      EXPECT_TRUE(common == Range{} || (other.contains(common.lo) && listed.contains(common.lo)));
      set.add(one);
      listed.insert(other.begin(), other.end());
      EXPECT_EQ(set.missing(one), Range{});
    }
    if (HasFailure()) {
      ADD_FAILURE() << "round " << round;
      return;
    }
  }
}

}  // namespace
}  // namespace orthant::schedule
