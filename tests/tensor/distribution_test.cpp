#include "orthant/tensor/distribution.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace orthant::tensor {
namespace {

/// Calls visit(grid) for every grid of exactly `ranks` parts.
template <class Visit>
void for_each_grid(int ranks, Visit visit) {
  for (int n = 1; n <= ranks; ++n) {
    for (int c = 1; n * c <= ranks; ++c) {
      for (int d = 1; n * c * d <= ranks; ++d) {
        for (int h = 1; n * c * d * h <= ranks; ++h) {
          const int w = ranks / (n * c * d * h);
          if (n * c * d * h * w == ranks) visit(Grid{n, c, d, h, w});
        }
      }
    }
  }
}

/// How often each cell of the tensor is owned.
std::vector<int> owners(const Distribution& distribution) {
  const Shape& global = distribution.global;
  std::vector<int> count(static_cast<std::size_t>(volume(global)), 0);
  for (int rank = 0; rank < parts(distribution.grid); ++rank) {
    const Box box = owned_box(distribution, rank);
    for (std::int64_t n = box.lo.n; n < box.hi.n; ++n) {
      for (std::int64_t c = box.lo.c; c < box.hi.c; ++c) {
        for (std::int64_t d = box.lo.d; d < box.hi.d; ++d) {
          for (std::int64_t h = box.lo.h; h < box.hi.h; ++h) {
            for (std::int64_t w = box.lo.w; w < box.hi.w; ++w) {
              ++count.at(static_cast<std::size_t>((((n * global.c + c) * global.d + d) * global.h + h) * global.w + w));
            }
          }
        }
      }
    }
  }
  return count;
}

TEST(Distribution, BoxesTileTheTensorExactlyOnce) {
  const std::vector<Shape> shapes{
      {1, 1, 1, 1, 1}, {2, 3, 5, 7, 4}, {1, 4, 3, 3, 3}, {5, 1, 2, 1, 13}, {3, 2, 1, 6, 11}};
  for (const Shape& shape : shapes) {
    for (int ranks = 1; ranks <= 12; ++ranks) {
      for_each_grid(ranks, [&](const Grid& grid) {
        const std::vector<int> count = owners({.global = shape, .grid = grid});
        const bool once = std::all_of(count.begin(), count.end(), [](int cells) { return cells == 1; });
        EXPECT_TRUE(once) << to_text(shape) << " over " << to_text(grid);
      });
    }
  }
}

TEST(Distribution, BlocksDifferByAtMostOneCellAndShrink) {
  for (std::int64_t extent = 0; extent <= 40; ++extent) {
    for (int count = 1; count <= 12; ++count) {
      EXPECT_EQ(block_begin(extent, count, 0), 0);
      EXPECT_EQ(block_begin(extent, count, count), extent);
      std::int64_t before = extent / count + 1;
      for (int i = 0; i < count; ++i) {
        const std::int64_t cells = block_begin(extent, count, i + 1) - block_begin(extent, count, i);
        EXPECT_GE(cells, extent / count);
        EXPECT_LE(cells, before);
        before = cells;
      }
    }
  }
}

TEST(Distribution, MorePartsThanCellsLeaveEmptyBoxes) {
  const Distribution distribution{.global = {.n = 1, .c = 1, .d = 3, .h = 1, .w = 1}, .grid = {.d = 5}};
  for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(volume(extents_of(owned_box(distribution, rank))), rank < 3 ? 1 : 0);
}

TEST(Distribution, RanksCountAlongWFirst) {
  const Distribution distribution{.global = {2, 1, 4, 1, 6}, .grid = {.n = 2, .d = 2, .w = 3}};
  EXPECT_EQ(owned_box(distribution, 1).lo, (Shape{0, 0, 0, 0, 2}));
  EXPECT_EQ(owned_box(distribution, 3).lo, (Shape{0, 0, 2, 0, 0}));
  EXPECT_EQ(owned_box(distribution, 6).lo, (Shape{1, 0, 0, 0, 0}));
  EXPECT_EQ(owned_box(distribution, 11), (Box{.lo = {1, 0, 2, 0, 4}, .hi = {2, 1, 4, 1, 6}}));
}

TEST(Distribution, BalancedCutsOfHugeExtentsDoNotOverflow) {
  constexpr std::int64_t huge = std::int64_t{1} << 61;
  EXPECT_EQ(block_begin(huge, 12, 12), huge);
}

TEST(Distribution, OnlyTheRanksOfTheGridTakePart) {
  const Distribution distribution{.global = {4, 1, 1, 1, 1}, .grid = {.n = 2}, .first_rank = 3};
  for (int rank = -1; rank < 8; ++rank) EXPECT_EQ(takes_part(distribution, rank), rank == 3 || rank == 4) << rank;
  EXPECT_EQ(owned_box(distribution, 4).lo.n, 2);
  EXPECT_EQ(owned_box(distribution, 5), Box{});
}

TEST(Grid, CoordinatesAndIndexAreInverse) {
  for (int ranks = 1; ranks <= 24; ++ranks) {
    for_each_grid(ranks, [&](const Grid& grid) {
      for (int index = 0; index < ranks; ++index) {
        const Grid at = coordinates(grid, index);
        for (const Dim dim : all_dims) EXPECT_TRUE(at[dim] >= 0 && at[dim] < grid[dim]);
        EXPECT_EQ(index_of(grid, at), index);
      }
    });
  }
}

TEST(Grid, PrintsWhatIsCut) {
  EXPECT_EQ(to_text(Grid{}), "1");
  EXPECT_EQ(to_text(Grid{.n = 2, .d = 2, .h = 2}), "n2d2h2");
  EXPECT_EQ(to_text(Grid{.c = 4, .w = 3}), "c4w3");
  EXPECT_EQ(parts(Grid{.n = 2, .c = 3, .d = 5, .h = 7, .w = 11}), 2310);
}

}  // namespace
}  // namespace orthant::tensor
