#include "orthant/tensor/moves.hpp"

#include "orthant/tensor/distribution.hpp"
#include "tests/tensor/all_moves.hpp"
#include "tests/tensor/draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace orthant::tensor {
namespace {

using test::Draw;

Grid draw_grid(Draw& draw) {
  return {.n = draw.number(1, 2),
          .c = draw.number(1, 3),
          .d = draw.number(1, 3),
          .h = draw.number(1, 2),
          .w = draw.number(1, 2)};
}

Shape draw_shape(Draw& draw) { return {draw(1, 3), draw(1, 5), draw(1, 4), draw(1, 3), draw(1, 3)}; }

/// Cuts at random places, some blocks empty.
Distribution draw_distribution(Draw& draw, const Shape& global, int spare) {
  Distribution result{.global = global, .grid = draw_grid(draw), .first_rank = draw.number(0, spare), .cuts = {}};
  for (const Dim dim : all_dims) {
    if (draw(0, 1) == 0) continue;
    std::vector<std::int64_t> cuts{0, global[dim]};
    for (int i = 1; i < result.grid[dim]; ++i) cuts.push_back(draw(0, global[dim]));
    std::sort(cuts.begin(), cuts.end());
    result.cuts[static_cast<std::size_t>(dim)] = cuts;
  }
  return result;
}

/// Ranges that rise at both ends, some of them empty.
std::vector<Range> draw_rising(Draw& draw, std::int64_t extent, int count) {
  std::vector<std::int64_t> los, his;
  for (int i = 0; i < count; ++i) {
    los.push_back(draw(0, extent));
    his.push_back(draw(0, extent));
  }
  std::sort(los.begin(), los.end());
  std::sort(his.begin(), his.end());
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < los.size(); ++i) ranges.push_back({los[i], his[i]});
  return ranges;
}

/// Parts that want any boxes: up to three side by side in c.
Demand draw_demand(Draw& draw, const Shape& global, int spare) {
  const Grid grid = draw_grid(draw);
  std::map<Dim, std::vector<Range>> along;
  for (const Dim dim : all_dims) along[dim] = draw_rising(draw, global[dim], grid[dim]);
  std::vector<std::vector<Range>> channels(static_cast<std::size_t>(grid.c));
  for (auto& ranges : channels) {
    for (std::int64_t i = draw(0, 3); i > 0; --i) {
      const std::int64_t a = draw(0, global.c - 1);
      ranges.push_back({a, draw(a + 1, global.c)});
    }
  }
  return {.grid = grid,
          .first_rank = draw.number(0, spare),
          .along = [along](Dim dim, int i) { return along.at(dim)[static_cast<std::size_t>(i)]; },
          .channels = [channels](int i) { return channels[static_cast<std::size_t>(i)]; }};
}

/// How many of the boxes each cell lies in.
std::map<std::array<std::int64_t, 5>, int> cells_of(const std::vector<Box>& boxes) {
  std::map<std::array<std::int64_t, 5>, int> counts;
  for (const Box& box : boxes) {
    for (std::int64_t n = box.lo.n; n < box.hi.n; ++n) {
      for (std::int64_t c = box.lo.c; c < box.hi.c; ++c) {
        for (std::int64_t d = box.lo.d; d < box.hi.d; ++d) {
          for (std::int64_t h = box.lo.h; h < box.hi.h; ++h) {
            for (std::int64_t w = box.lo.w; w < box.hi.w; ++w) ++counts[{n, c, d, h, w}];
          }
        }
      }
    }
  }
  return counts;
}

TEST(Moves, BringExactlyWhatIsWanted) {
  Draw draw(1);
  for (int trial = 0; trial < 2000 && !testing::Test::HasFailure(); ++trial) {
    const Shape global = draw_shape(draw);
    const Distribution held = draw_distribution(draw, global, 3);
    const Redistribution traffic{.held = held, .wanted = draw_demand(draw, global, 3)};
    const int ranks =
        std::max(held.first_rank + parts(held.grid), traffic.wanted.first_rank + parts(traffic.wanted.grid)) +
        draw.number(0, 2);
    std::vector<std::vector<Box>> wanted;
    for (int rank = 0; rank < ranks; ++rank) wanted.push_back(wanted_boxes(traffic.wanted, rank));
    std::vector<Moves> all;
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(moves_of(traffic, rank));
      const Moves scanned = test::moves_by_scan(traffic, rank, ranks);
      EXPECT_EQ(all.back().sends, scanned.sends);
      EXPECT_EQ(all.back().receives, scanned.receives);
      EXPECT_EQ(all.back().stays, scanned.stays);
    }
    const DemandTable table(traffic.wanted);
    const Redistribution looked_up{.held = held, .wanted = table.demand()};
    for (int rank = 0; rank < ranks; ++rank) {
      const Moves moves = moves_of(looked_up, rank);
      EXPECT_EQ(moves.sends, all[static_cast<std::size_t>(rank)].sends);
      EXPECT_EQ(moves.receives, all[static_cast<std::size_t>(rank)].receives);
    }

    for (int rank = 0; rank < ranks; ++rank) {
      const Moves& moves = all[static_cast<std::size_t>(rank)];
      std::vector<std::vector<Box>> got(wanted[static_cast<std::size_t>(rank)].size());
      for (const Move& move : moves.stays) got.at(static_cast<std::size_t>(move.wanted)).push_back(move.box);
      for (const Move& move : moves.receives) got.at(static_cast<std::size_t>(move.wanted)).push_back(move.box);
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(cells_of(got[i]), cells_of({wanted[static_cast<std::size_t>(rank)][i]}));
      }
      EXPECT_TRUE(std::is_sorted(moves.sends.begin(), moves.sends.end(),
                                 [](const Move& a, const Move& b) { return a.peer < b.peer; }));
      for (int peer = 0; peer < ranks; ++peer) {
        std::vector<Box> sent;
        std::vector<Box> received;
        for (const Move& move : moves.sends) {
          EXPECT_TRUE(contains(owned_box(held, rank), move.box));
          if (move.peer == peer) sent.push_back(move.box);
        }
        for (const Move& move : all[static_cast<std::size_t>(peer)].receives) {
          if (move.peer == rank) received.push_back(move.box);
        }
        EXPECT_EQ(sent, received);
      }
    }
  }
}

TEST(Moves, BoxesWithExplicitCutsTileTheTensor) {
  Draw draw(2);
  for (int trial = 0; trial < 2000; ++trial) {
    const Shape global = draw_shape(draw);
    const Distribution distribution = draw_distribution(draw, global, 4);
    std::vector<Box> boxes;
    for (int rank = 0; rank < distribution.first_rank + parts(distribution.grid) + 3; ++rank) {
      const Box box = owned_box(distribution, rank);
      if (!takes_part(distribution, rank)) {
        EXPECT_EQ(box, Box{});
      }
      boxes.push_back(box);
    }
    EXPECT_EQ(cells_of(boxes), cells_of({whole(global)}));
  }
}

}  // namespace
}  // namespace orthant::tensor
