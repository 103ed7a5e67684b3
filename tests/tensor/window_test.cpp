#include "orthant/tensor/window.hpp"

#include "orthant/base/error.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace orthant::tensor {
namespace {

/// The number of outputs by trying one after the other.
std::int64_t counted_outputs(const Window& window, std::int64_t extent) {
  std::int64_t count = 0;
  while (true) {
    const std::int64_t last_tap = count * window.stride.w + (window.size.w - 1) * window.dilation.w - window.pad_lo.w;
    if (last_tap >= extent + window.pad_hi.w) return count;
    ++count;
  }
}

Window row(std::int64_t size, std::int64_t stride, std::int64_t dilation, std::int64_t lo, std::int64_t hi) {
  return {.size = {1, 1, size},
          .stride = {1, 1, stride},
          .dilation = {1, 1, dilation},
          .pad_lo = {0, 0, lo},
          .pad_hi = {0, 0, hi}};
}

/// Calls visit(window) for many windows along w.
template <class Visit>
void for_each_window(Visit visit) {
  for (std::int64_t size = 1; size <= 4; ++size) {
    for (std::int64_t stride = 1; stride <= 3; ++stride) {
      for (std::int64_t dilation = 1; dilation <= 3; ++dilation) {
        for (std::int64_t lo = 0; lo <= 2; ++lo) {
          for (std::int64_t hi = 0; hi <= 2; ++hi) visit(row(size, stride, dilation, lo, hi));
        }
      }
    }
  }
}

TEST(Window, OutputsAreThoseThatFit) {
  for_each_window([](const Window& window) {
    for (std::int64_t extent = 1; extent <= 12; ++extent) {
      const std::int64_t expected = counted_outputs(window, extent);
      if (expected == 0) {
        EXPECT_THROW(static_cast<void>(window_output(window, Dim::w, extent)), base::Error);
      } else {
        EXPECT_EQ(window_output(window, Dim::w, extent), expected);
      }
    }
  });
}

TEST(Window, TransposedOutputIsAnInputOfTheConvolution) {
  for_each_window([](const Window& window) {
    for (std::int64_t outputs = 1; outputs <= 6; ++outputs) {
      const std::int64_t smallest =
          (outputs - 1) * window.stride.w + reach(window, Dim::w) - window.pad_lo.w - window.pad_hi.w;
      for (std::int64_t extra = 0; extra < window.stride.w && smallest >= 1; ++extra) {
        const Extent3 inputs = transposed_output(window, {1, 1, outputs}, {0, 0, extra});
        EXPECT_EQ(inputs.w, smallest + extra);
        EXPECT_EQ(window_output(window, Dim::w, inputs.w), outputs);
      }
    }
  });
}

TEST(Window, TransposedOutputRefusesWhatLeavesNothing) {
  EXPECT_THROW(static_cast<void>(transposed_output(row(1, 1, 1, 1, 1), {1, 1, 2}, cube(0))), base::Error);
  EXPECT_THROW(static_cast<void>(transposed_output(row(3, 2, 1, 0, 0), {1, 1, 2}, {0, 0, 2})), base::Error);
  EXPECT_THROW(static_cast<void>(transposed_output(row(3, 2, 1, 0, 0), {1, 1, 2}, {0, 0, -1})), base::Error);
}

TEST(Window, CountsTapsAndReach) {
  const Window window{.size = {2, 3, 4}, .dilation = {1, 2, 3}};
  EXPECT_EQ(taps(window), 24);
  EXPECT_EQ(reach(window, Dim::d), 2);
  EXPECT_EQ(reach(window, Dim::h), 5);
  EXPECT_EQ(reach(window, Dim::w), 10);
}

TEST(Window, CheckNamesTheFieldAndTheDim) {
  const auto message_of = [](const Window& window) -> std::string {
    try {
      check(window);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of(Window{}), "");
  EXPECT_EQ(message_of({.size = {3, 0, 3}}), "kernel size is 0 in dim h; it must be at least 1");
  EXPECT_EQ(message_of({.stride = {1, 1, 0}}), "stride is 0 in dim w; it must be at least 1");
  EXPECT_EQ(message_of({.dilation = {-2, 1, 1}}), "dilation is -2 in dim d; it must be at least 1");
  EXPECT_EQ(message_of({.pad_lo = {0, 0, -1}}), "padding is -1 in dim w; it must be at least 0");
  EXPECT_EQ(message_of({.pad_hi = {-1, 0, 0}}), "padding is -1 in dim d; it must be at least 0");
}

TEST(Window, RefusesSizesThatOverflow) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(static_cast<void>(window_output(row(1, 1, 1, largest, 1), Dim::w, 5)), base::Error);
  EXPECT_THROW(static_cast<void>(window_output(row(largest, 1, 2, 0, 0), Dim::w, 5)), base::Error);
  EXPECT_THROW(static_cast<void>(transposed_output(row(3, largest, 1, 0, 0), {1, 1, 5}, cube(0))), base::Error);
  EXPECT_THROW(static_cast<void>(taps({.size = {largest, 2, 1}})), base::Error);
}

}  // namespace
}  // namespace orthant::tensor
