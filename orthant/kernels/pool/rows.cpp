#include "orthant/kernels/pool/pool.hpp"
#include "orthant/kernels/simd.hpp"

#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/pool/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::pool::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

/// The taps of one window that lie inside, as offsets into a row of src.
struct Pixels {
  std::int64_t first = 0, step = 0, count = 0, first_tap = 0;
};

HWY_INLINE Pixels pixels_at(const PoolRow& row, std::int64_t o) {
  const TapRange taps = row.w.taps_inside(o);
  return {.first = (row.w.first_input(o) + taps.begin * row.w.dilation) * row.src_stride,
          .step = row.w.dilation * row.src_stride,
          .count = taps.end - taps.begin,
          .first_tap = taps.begin};
}

/// Asks for the pixels that the same window of the next row of dst will read.
HWY_INLINE void prefetch_next(const PoolRow& row, const float* at) {
  for (std::int64_t s = 0; s < row.w.stride; ++s) __builtin_prefetch(at + row.next_row + s * row.src_stride);
}

/// Calls window(taps, pixels, o) for every pixel of dst, with a constant number of taps where that is 2 or 3.
template <class Window>
HWY_INLINE void for_windows(const PoolRow& row, Window window) {
  for (std::int64_t o = 0; o < row.w.dst; ++o) {
    const Pixels pixels = pixels_at(row, o);
    switch (pixels.count) {
      case 2: window(std::integral_constant<std::int64_t, 2>{}, pixels, o); break;
      case 3: window(std::integral_constant<std::int64_t, 3>{}, pixels, o); break;
      default: window(pixels.count, pixels, o);
    }
  }
}

template <class D>
HWY_INLINE void store_indices(D, hn::Vec<hn::RebindToSigned<D>> index, const PoolRow& row, std::int64_t at) {
  if (row.argmax_bytes == 1) {
    const hn::Rebind<std::uint8_t, D> narrow;
    hn::StoreU(hn::DemoteTo(narrow, index), narrow, static_cast<std::uint8_t*>(row.argmax) + at);
  } else {
    const hn::Rebind<std::uint16_t, D> narrow;
    hn::StoreU(hn::DemoteTo(narrow, index), narrow, static_cast<std::uint16_t*>(row.argmax) + at);
  }
}

/// The first of equal items wins, NaN wins over all, as in PyTorch.
template <class D, class Taps>
HWY_INLINE void max_window(D d, const PoolRow& row, Taps taps, const Pixels& pixels, std::int64_t o, std::int64_t i) {
  const hn::RebindToSigned<D> di;
  // Starts from the first item: a window of -infinity has an argmax inside.
  const bool empty = row.row_count == 0 || taps == 0;
  auto largest =
      empty ? hn::Set(d, -std::numeric_limits<float>::infinity()) : hn::LoadU(d, row.rows[0] + pixels.first + i);
  auto index = hn::Set(di, empty ? 0 : static_cast<std::int32_t>(row.row_taps[0] + pixels.first_tap));
  for (std::int64_t r = 0; r < row.row_count; ++r) {
    const float* at = row.rows[r] + pixels.first + i;
    prefetch_next(row, at);
    const auto tap = static_cast<std::int32_t>(row.row_taps[r] + pixels.first_tap);
    for (std::int64_t k = 0; k < taps; ++k) {
      const auto value = hn::LoadU(d, at + k * pixels.step);
      const auto wins = hn::Or(hn::Gt(value, largest), hn::IsNaN(value));
      largest = hn::IfThenElse(wins, value, largest);
      index = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, tap + static_cast<std::int32_t>(k)), index);
    }
  }
  hn::StoreU(largest, d, row.dst + o * row.dst_stride + i);
  if (row.argmax) store_indices(d, index, row, o * row.channels + i);
}

void max_row(const PoolRow& args) {
  const PoolRow row = args;  // a copy that no store can change stays in registers
  for_windows(row, [&](auto taps, const Pixels& pixels, std::int64_t o) HWY_ATTR {
    for_lanes(row.channels, [&](auto d, std::int64_t i) HWY_ATTR { max_window(d, row, taps, pixels, o, i); });
  });
}

void average_row(const PoolRow& args) {
  const PoolRow row = args;
  for_windows(row, [&](auto taps, const Pixels& pixels, std::int64_t o) HWY_ATTR {
    const float divisor = row.divisor * (row.counts_padding ? 1.0F : static_cast<float>(row.w.count_global(o)));
    for_lanes(row.channels, [&](auto d, std::int64_t i) HWY_ATTR {
      auto sum = hn::Zero(d);
      for (std::int64_t r = 0; r < row.row_count; ++r) {
        const float* at = row.rows[r] + pixels.first + i;
        prefetch_next(row, at);
        for (std::int64_t k = 0; k < taps; ++k) sum = hn::Add(sum, hn::LoadU(d, at + k * pixels.step));
      }
      if (divisor != 1) sum = hn::Div(sum, hn::Set(d, divisor));
      hn::StoreU(sum, d, row.dst + o * row.dst_stride + i);
    });
  });
}

}  // namespace
}  // namespace orthant::kernels::pool::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::pool {
namespace {

HWY_EXPORT(max_row);
HWY_EXPORT(average_row);

}  // namespace

void max_pool_row(const PoolRow& row) { HWY_DYNAMIC_DISPATCH(max_row)(row); }

void average_pool_row(const PoolRow& row) { HWY_DYNAMIC_DISPATCH(average_row)(row); }

}  // namespace orthant::kernels::pool
#endif
