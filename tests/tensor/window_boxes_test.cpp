#include "orthant/tensor/window_boxes.hpp"

#include "orthant/tensor/distribution.hpp"
#include "tests/tensor/draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace orthant::tensor {
namespace {

using test::Draw;
using Cells = std::set<std::int64_t>;

/// One random window along w, and how far it slides.
struct Case {
  Window window;
  std::int64_t src = 0, dst = 0;
};

Window draw_window(Draw& draw) {
  Window window;
  window.size.w = draw(1, 7);
  window.stride.w = draw(1, 4);
  window.dilation.w = draw(1, 3);
  window.pad_lo.w = draw(0, draw(0, 9) == 0 ? 12 : reach(window, Dim::w));
  window.pad_hi.w = draw(0, draw(0, 9) == 0 ? 12 : reach(window, Dim::w));
  return window;
}

/// Some case in which there is an output.
Case draw_case(Draw& draw) {
  while (true) {
    Case drawn{.window = draw_window(draw), .src = draw(1, 30), .dst = 0};
    if (drawn.src + drawn.window.pad_lo.w + drawn.window.pad_hi.w < reach(drawn.window, Dim::w)) continue;
    drawn.dst = window_output(drawn.window, Dim::w, drawn.src);
    return drawn;
  }
}

std::string text(const Case& drawn) {
  const Window& window = drawn.window;
  return "size " + std::to_string(window.size.w) + " stride " + std::to_string(window.stride.w) + " dilation " +
         std::to_string(window.dilation.w) + " pad " + std::to_string(window.pad_lo.w) + " " +
         std::to_string(window.pad_hi.w) + " src " + std::to_string(drawn.src) + " dst " + std::to_string(drawn.dst);
}

Shape line(std::int64_t extent) { return {.n = 1, .c = 1, .d = 1, .h = 1, .w = extent}; }

Box piece(const Range& range) {
  Box box = whole(line(1));
  box.set(Dim::w, range);
  return box;
}

std::int64_t tap(const Window& window, std::int64_t dst, std::int64_t k) {
  return dst * window.stride.w + k * window.dilation.w - window.pad_lo.w;
}

/// The src cells that the windows of dst cells [lo, hi) look at, tap by tap.
Cells looked_at(const Case& drawn, const Range& dst) {
  Cells cells;
  for (std::int64_t i = dst.lo; i < dst.hi; ++i) {
    for (std::int64_t k = 0; k < drawn.window.size.w; ++k) {
      const std::int64_t cell = tap(drawn.window, i, k);
      if (cell >= 0 && cell < drawn.src) cells.insert(cell);
    }
  }
  return cells;
}

/// Uneven, often empty pieces of [0, extent).
std::vector<Range> draw_pieces(Draw& draw, std::int64_t extent) {
  std::vector<std::int64_t> cuts{0, extent};
  for (std::int64_t i = draw(0, 4); i > 0; --i) cuts.push_back(draw(0, extent));
  std::sort(cuts.begin(), cuts.end());
  std::vector<Range> pieces;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) pieces.push_back({cuts[i], cuts[i + 1]});
  return pieces;
}

/// The local window must put the same taps on the same cells, and have as many outputs as the box.
void expect_same_taps(const Case& drawn, const Box& src, const Box& dst) {
  const Window local = local_window(drawn.window, src, dst);
  EXPECT_NO_THROW(check(local));
  for (std::int64_t i = dst.lo.w; i < dst.hi.w; ++i) {
    for (std::int64_t k = 0; k < drawn.window.size.w; ++k) {
      EXPECT_EQ(tap(local, i - dst.lo.w, k) + src.lo.w, tap(drawn.window, i, k));
    }
  }
  EXPECT_EQ(window_output(local, Dim::w, extents_of(src).w), extents_of(dst).w);
}

TEST(CellsRead, HoldsWhatWindowsLookAtAndLeavesNoCellOut) {
  Draw draw(1);
  for (int trial = 0; trial < 20000 && !testing::Test::HasFailure(); ++trial) {
    const Case drawn = draw_case(draw);
    SCOPED_TRACE(text(drawn));
    Cells covered;
    for (const Range& range : draw_pieces(draw, drawn.dst)) {
      const Box read = cells_read(drawn.window, piece(range), line(drawn.src), line(drawn.dst));
      const Cells looked = range.lo < range.hi ? looked_at(drawn, range) : Cells{};
      for (const std::int64_t cell : looked) EXPECT_TRUE(cell >= read.lo.w && cell < read.hi.w);
      EXPECT_TRUE(contains(whole(line(drawn.src)), read));
      if (is_empty(read)) {
        EXPECT_EQ(read, Box{});
        continue;
      }
      for (std::int64_t cell = read.lo.w; cell < read.hi.w; ++cell) covered.insert(cell);
      // Nothing before the first tap, and beyond the last only cells that no window looks at.
      EXPECT_GE(read.lo.w, tap(drawn.window, range.lo, 0));
      const Cells after = looked_at(drawn, {range.hi, drawn.dst});
      for (std::int64_t cell = tap(drawn.window, range.hi - 1, drawn.window.size.w - 1) + 1; cell < read.hi.w; ++cell) {
        EXPECT_EQ(after.count(cell), 0U);
      }
      expect_same_taps(drawn, read, piece(range));
    }
    EXPECT_EQ(covered.size(), static_cast<std::size_t>(drawn.src));
  }
}

/// src and dst are those of the convolution: `src` is what a transposed convolution makes.
void expect_reading(const Case& drawn, const Range& range, bool exact_outputs) {
  const Box reading = cells_reading(drawn.window, piece(range), line(drawn.dst));
  if (range.lo == range.hi) {
    EXPECT_EQ(reading, Box{});
    return;
  }
  EXPECT_FALSE(is_empty(reading));
  EXPECT_TRUE(contains(whole(line(drawn.dst)), reading));
  const std::int64_t span = std::max(reach(drawn.window, Dim::w), drawn.window.stride.w);
  for (std::int64_t i = 0; i < drawn.dst; ++i) {
    const Cells looked = looked_at(drawn, {i, i + 1});
    const bool looks = std::any_of(looked.begin(), looked.end(),
                                   [&](std::int64_t cell) { return cell >= range.lo && cell < range.hi; });
    const bool inside = i >= reading.lo.w && i < reading.hi.w;
    EXPECT_TRUE(!looks || inside);
    const bool near = tap(drawn.window, i, 0) < range.hi && tap(drawn.window, i, 0) + span > range.lo;
    EXPECT_TRUE(near || !inside || extents_of(reading).w == 1);
  }
  const Window local = local_window(drawn.window, piece(range), reading);
  EXPECT_NO_THROW(check(local));
  if (exact_outputs) expect_same_taps(drawn, piece(range), reading);
}

TEST(CellsReading, HoldsEveryWindowThatLooksIn) {
  Draw draw(2);
  for (int trial = 0; trial < 20000 && !testing::Test::HasFailure(); ++trial) {
    const Case drawn = draw_case(draw);
    SCOPED_TRACE(text(drawn));
    for (const Range& range : draw_pieces(draw, drawn.src)) expect_reading(drawn, range, true);
  }
}

TEST(CellsReading, ServesTransposedConvolutionsWithOutputPadding) {
  Draw draw(3);
  int tried = 0;
  while (tried < 20000 && !testing::Test::HasFailure()) {
    Case drawn{.window = draw_window(draw), .src = 0, .dst = draw(1, 12)};
    const std::int64_t extra = draw(0, std::max(drawn.window.stride.w, drawn.window.dilation.w) - 1);
    const std::int64_t smallest = (drawn.dst - 1) * drawn.window.stride.w + reach(drawn.window, Dim::w) -
                                  drawn.window.pad_lo.w - drawn.window.pad_hi.w;
    if (smallest + extra < 1) continue;
    drawn.src = transposed_output(drawn.window, {1, 1, drawn.dst}, {0, 0, extra}).w;
    SCOPED_TRACE(text(drawn) + " extra " + std::to_string(extra));
    for (const Range& range : draw_pieces(draw, drawn.src)) expect_reading(drawn, range, extra < drawn.window.stride.w);
    ++tried;
  }
}

TEST(CellsRead, DimsAreIndependent) {
  const Window window{.size = {3, 5, 1}, .stride = {1, 2, 3}, .pad_lo = {1, 2, 0}, .pad_hi = {1, 2, 0}};
  const Shape src{.n = 2, .c = 4, .d = 8, .h = 16, .w = 9};
  const Shape dst{.n = 2, .c = 6, .d = 8, .h = 8, .w = 3};
  const Box box{.lo = {1, 2, 2, 4, 1}, .hi = {2, 5, 4, 8, 2}};
  const Box read = cells_read(window, box, src, dst);
  EXPECT_EQ(read, (Box{.lo = {1, 2, 1, 6, 3}, .hi = {2, 5, 5, 16, 6}}));
  EXPECT_EQ(local_window(window, read, box).pad_lo, (Extent3{0, 0, 0}));
  EXPECT_EQ(local_window(window, read, box).pad_hi, (Extent3{0, 1, 0}));
}

}  // namespace
}  // namespace orthant::tensor
