#include "orthant/kernels/pool/gradient.hpp"
#include "orthant/kernels/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/pool/gradient_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/activation_inl.hpp"
#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::pool::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

/// Multiplies by activation'(y), or adds to what is there, and stores.
template <class A, class D>
HWY_INLINE void finish(A activation, D d, const PoolGradientRow& row, hn::Vec<D> sum, std::int64_t at) {
  prefetch_ahead(row.diff_src + at);
  if (row.accumulate) {
    sum = hn::Add(sum, hn::LoadU(d, row.diff_src + at));
  } else if (row.y) {
    sum = activation.backward(d, hn::LoadU(d, row.y + at), sum);
  }
  hn::StoreU(sum, d, row.diff_src + at);
}

template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> load_indices(D d, const PoolGradientRow& row, std::int64_t r,
                                                       std::int64_t at) {
  const hn::RebindToSigned<D> di;
  if (row.argmax_bytes == 1) {
    const hn::Rebind<std::uint8_t, D> narrow;
    return hn::PromoteTo(di, hn::LoadU(narrow, static_cast<const std::uint8_t*>(row.argmax[r]) + at));
  }
  const hn::Rebind<std::uint16_t, D> narrow;
  (void)d;
  return hn::PromoteTo(di, hn::LoadU(narrow, static_cast<const std::uint16_t*>(row.argmax[r]) + at));
}

/// The sum over the windows that read src pixel `s` and chose it.
template <class D>
HWY_INLINE hn::Vec<D> chosen(D d, const PoolGradientRow& row, std::int64_t s, std::int64_t i) {
  const hn::RebindToSigned<D> di;
  auto sum = hn::Zero(d);
  const std::int32_t begin = row.readers_begin[s], end = row.readers_begin[s + 1];
  for (std::int64_t r = 0; r < row.row_count; ++r) {
    for (std::int32_t reader = begin; reader < end; ++reader) {
      const std::int64_t o = row.readers_output[reader];
      const auto tap = hn::Set(di, row.row_taps[r] + row.readers_tap[reader]);
      const auto is_chosen = hn::Eq(load_indices(d, row, r, o * row.channels + i), tap);
      const auto g = hn::LoadU(d, row.rows[r] + o * row.dst_stride + i);
      sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(d, is_chosen), g));
    }
  }
  return sum;
}

/// Windows that do not overlap: at most one reader in one row.
template <class A>
HWY_INLINE void choose_from_one(A activation, const PoolGradientRow& row) {
  const float* diff_dst = row.rows[0];
  const std::int32_t first_tap = row.row_taps[0];
  for (std::int64_t s = 0; s < row.src_pixels; ++s) {
    const std::int32_t reader = row.readers_begin[s];
    const bool is_read = reader < row.readers_begin[s + 1];
    const std::int64_t o = is_read ? row.readers_output[reader] : 0;
    const std::int32_t tap = is_read ? first_tap + row.readers_tap[reader] : -1;
    for_lanes(row.channels, [&](auto d, std::int64_t i) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> di;
      const auto is_chosen = hn::Eq(load_indices(d, row, 0, o * row.channels + i), hn::Set(di, tap));
      const auto g = hn::LoadU(d, diff_dst + o * row.dst_stride + i);
      finish(activation, d, row, hn::IfThenElseZero(hn::RebindMask(d, is_chosen), g), s * row.src_stride + i);
    });
  }
}

void max_gradient_row(const PoolGradientRow& args) {
  with_activation(args.kind, args.slope, [&](auto activation) HWY_ATTR {
    const PoolGradientRow row = args;  // a copy that no store can change stays in registers
    if (row.one_reader && row.row_count == 1) return choose_from_one(activation, row);
    for (std::int64_t s = 0; s < row.src_pixels; ++s) {
      for_lanes(row.channels, [&](auto d, std::int64_t i) HWY_ATTR {
        finish(activation, d, row, chosen(d, row, s, i), s * row.src_stride + i);
      });
    }
  });
}

/// sums = the rows of diff_dst added up, each window's share of one item.
HWY_INLINE void add_rows(const PoolGradientRow& row) {
  for (std::int64_t o = 0; o < row.dst_pixels; ++o) {
    for_lanes(row.channels, [&](auto d, std::int64_t i) HWY_ATTR {
      auto sum = hn::Zero(d);
      for (std::int64_t r = 0; r < row.row_count; ++r) {
        const auto g = hn::LoadU(d, row.rows[r] + o * row.dst_stride + i);
        sum = hn::MulAdd(g, hn::Set(d, row.row_factors[r]), sum);
      }
      hn::StoreU(hn::Mul(sum, hn::Set(d, row.pixel_factors[o])), d, row.sums + o * row.channels + i);
    });
  }
}

/// The same for `Rows` dense rows and one factor.
template <int Rows>
HWY_INLINE void add_dense_rows(const PoolGradientRow& row) {
  const float* rows[Rows];
  for (int r = 0; r < Rows; ++r) rows[r] = row.rows[r];
  const float factor = row.pixel_factors[0];
  for_lanes(row.dst_pixels * row.channels, [&](auto d, std::int64_t i) HWY_ATTR {
    auto sum = hn::LoadU(d, rows[0] + i);
    for (int r = 1; r < Rows; ++r) sum = hn::Add(sum, hn::LoadU(d, rows[r] + i));
    hn::StoreU(hn::Mul(sum, hn::Set(d, factor)), d, row.sums + i);
  });
}

HWY_INLINE void sum_rows(const PoolGradientRow& row) {
  if (!row.one_factor || row.dst_stride != row.channels) return add_rows(row);
  switch (row.row_count) {
    case 1: return add_dense_rows<1>(row);
    case 2: return add_dense_rows<2>(row);
    case 4: return add_dense_rows<4>(row);
    default: return add_rows(row);
  }
}

/// The sum over the windows that read src pixel `s`, for any number of them.
struct ManyReaders {
  const PoolGradientRow& row;
  std::int32_t begin, end;

  HWY_INLINE ManyReaders(const PoolGradientRow& r, std::int64_t s)
      : row(r), begin(r.readers_begin[s]), end(r.readers_begin[s + 1]) {}

  template <class D>
  HWY_INLINE hn::Vec<D> sum(D d, std::int64_t i) const {
    auto sum = hn::Zero(d);
    for (std::int32_t reader = begin; reader < end; ++reader) {
      sum = hn::Add(sum, hn::LoadU(d, row.sums + row.readers_output[reader] * row.channels + i));
    }
    return sum;
  }
};

/// For at most two: a window that does not exist stands at the pixel of zeros behind the sums.
struct TwoReaders {
  const float* first;
  const float* second;

  HWY_INLINE TwoReaders(const PoolGradientRow& row, std::int64_t s)
      : first(row.sums + row.reader_pairs[2 * s]), second(row.sums + row.reader_pairs[2 * s + 1]) {}

  template <class D>
  HWY_INLINE hn::Vec<D> sum(D d, std::int64_t i) const {
    return hn::Add(hn::LoadU(d, first + i), hn::LoadU(d, second + i));
  }
};

template <class ReadersOf, class A>
HWY_INLINE void spread_sums(A activation, const PoolGradientRow& row) {
  for (std::int64_t s = 0; s < row.src_pixels; ++s) {
    const ReadersOf readers(row, s);
    for_lanes(row.channels, [&](auto d, std::int64_t i)
                                HWY_ATTR { finish(activation, d, row, readers.sum(d, i), s * row.src_stride + i); });
  }
}

void average_gradient_row(const PoolGradientRow& args) {
  with_activation(args.kind, args.slope, [&](auto activation) HWY_ATTR {
    const PoolGradientRow row = args;
    sum_rows(row);
    row.reader_pairs ? spread_sums<TwoReaders>(activation, row) : spread_sums<ManyReaders>(activation, row);
  });
}

}  // namespace
}  // namespace orthant::kernels::pool::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::pool {
namespace {

HWY_EXPORT(max_gradient_row);
HWY_EXPORT(average_gradient_row);

}  // namespace

void max_pool_gradient_row(const PoolGradientRow& row) { HWY_DYNAMIC_DISPATCH(max_gradient_row)(row); }

void average_pool_gradient_row(const PoolGradientRow& row) { HWY_DYNAMIC_DISPATCH(average_gradient_row)(row); }

}  // namespace orthant::kernels::pool
#endif
