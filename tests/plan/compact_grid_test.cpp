#include "orthant/plan/compact_grid.hpp"

#include "tests/plan/message.hpp"

#include <gtest/gtest.h>

namespace orthant::plan {
namespace {

std::string error_of(const std::string& text) {
  return message_of([&] { (void)parse_grid(text); });
}

TEST(CompactGrid, ReadsLettersInAnyOrder) {
  EXPECT_EQ(parse_grid("n2d2h2"), (CompactGrid{.n = 2, .d = 2, .h = 2}));
  EXPECT_EQ(parse_grid("p4n2"), (CompactGrid{.n = 2, .p = 4}));
  EXPECT_EQ(parse_grid("c2f3"), (CompactGrid{.f = 3, .c = 2}));
  EXPECT_EQ(parse_grid("w16"), (CompactGrid{.w = 16}));
  EXPECT_EQ(parse_grid("1"), CompactGrid{});
}

TEST(CompactGrid, TextRoundTrips) {
  for (const char* text : {"1", "n2", "n2f4", "f2c2", "d2h3w4", "n2p2", "n2f3c5d7h11w13p17"}) {
    EXPECT_EQ(to_text(parse_grid(text)), text);
  }
}

TEST(CompactGrid, FiltersAndChannelsCutTheChannelsOfDst) {
  const CompactGrid grid = parse_grid("n2f3c4d5p6");
  EXPECT_EQ(dst_grid(grid), (tensor::Grid{.n = 2, .c = 12, .d = 5}));
  EXPECT_EQ(stage_ranks(grid), 120);
  EXPECT_EQ(total_ranks(grid), 720);
}

TEST(CompactGrid, ErrorsSayWhatWouldBeRight) {
  EXPECT_EQ(error_of(""), "an empty grid; write letters with numbers, e.g. n2d2h2");
  EXPECT_EQ(error_of("n2x2"),
            "grid 'n2x2': unknown letter 'x' at place 3; known are n (samples), d h w (space), f (filters), c "
            "(channels) and p (pipeline stages), e.g. n2d2h2");
  EXPECT_EQ(error_of("4d"), "grid '4d': a number without a letter at place 1; write e.g. n2d2h2");
  EXPECT_EQ(error_of("n2d"), "grid 'n2d': d has no number; write e.g. d2");
  EXPECT_EQ(error_of("d0"), "grid 'd0': d is 0; it must be at least 1");
  EXPECT_EQ(error_of("d2h2d2"), "grid 'd2h2d2': d is there twice; write it once, e.g. d4");
  EXPECT_EQ(error_of("d1024h1024w2"), "grid 'd1024h1024w2' has too many parts; at most 1048576 ranks are supported");
  EXPECT_NE(error_of("d99999999999999999999"), "no error");
  EXPECT_NE(error_of("d-2"), "no error");
  EXPECT_NE(error_of("N2"), "no error");
  EXPECT_NE(error_of("n2 d2"), "no error");
}

}  // namespace
}  // namespace orthant::plan
