#include "orthant/kernels/pool.hpp"
#include "orthant/kernels/simd.hpp"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/pool_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::HWY_NAMESPACE {
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

template <class D>
HWY_INLINE void store_indices(D d, hn::Vec<hn::RebindToSigned<D>> index, const PoolRow& row, std::int64_t at) {
  if (row.argmax_bytes == 1) {
    const hn::Rebind<std::uint8_t, D> narrow;
    hn::StoreU(hn::DemoteTo(narrow, index), narrow, static_cast<std::uint8_t*>(row.argmax) + at);
  } else {
    const hn::Rebind<std::uint16_t, D> narrow;
    hn::StoreU(hn::DemoteTo(narrow, index), narrow, static_cast<std::uint16_t*>(row.argmax) + at);
  }
  (void)d;
}

/// The first of equal items wins, NaN wins over all, as in PyTorch.
template <class D>
HWY_INLINE void max_window(D d, const PoolRow& row, const Pixels& pixels, std::int64_t o, std::int64_t i) {
  const hn::RebindToSigned<D> di;
  auto largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto index = hn::Zero(di);
  bool first = true;
  for (std::int64_t r = 0; r < row.row_count; ++r) {
    const float* at = row.rows[r] + pixels.first + i;
    auto tap = static_cast<std::int32_t>(row.row_taps[r] + pixels.first_tap);
    for (std::int64_t k = 0; k < pixels.count; ++k, at += pixels.step, ++tap) {
      const auto value = hn::LoadU(d, at);
      const auto wins = hn::Or(hn::Gt(value, largest), hn::Ne(value, value));
      largest = first ? value : hn::IfThenElse(wins, value, largest);
      index = first ? hn::Set(di, tap) : hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, tap), index);
      first = false;
    }
  }
  hn::StoreU(largest, d, row.dst + o * row.dst_stride + i);
  if (row.argmax) store_indices(d, index, row, o * row.channels + i);
}

void max_row(const PoolRow& row) {
  for (std::int64_t o = 0; o < row.w.dst; ++o) {
    const Pixels pixels = pixels_at(row, o);
    for_lanes(row.channels, [&](auto d, std::int64_t i) HWY_ATTR { max_window(d, row, pixels, o, i); });
  }
}

void average_row(const PoolRow& row) {
  for (std::int64_t o = 0; o < row.w.dst; ++o) {
    const Pixels pixels = pixels_at(row, o);
    const float divisor = row.divisor * (row.counts_padding ? 1.0F : static_cast<float>(pixels.count));
    for_lanes(row.channels, [&](auto d, std::int64_t i) HWY_ATTR {
      auto sum = hn::Zero(d);
      for (std::int64_t r = 0; r < row.row_count; ++r) {
        const float* at = row.rows[r] + pixels.first + i;
        for (std::int64_t k = 0; k < pixels.count; ++k, at += pixels.step) sum = hn::Add(sum, hn::LoadU(d, at));
      }
      if (divisor != 1) sum = hn::Div(sum, hn::Set(d, divisor));
      hn::StoreU(sum, d, row.dst + o * row.dst_stride + i);
    });
  }
}

}  // namespace
}  // namespace orthant::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels {
namespace {

HWY_EXPORT(max_row);
HWY_EXPORT(average_row);

}  // namespace

void max_pool_row(const PoolRow& row) { HWY_DYNAMIC_DISPATCH(max_row)(row); }

void average_pool_row(const PoolRow& row) { HWY_DYNAMIC_DISPATCH(average_row)(row); }

}  // namespace orthant::kernels
#endif
