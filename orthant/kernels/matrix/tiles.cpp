#include "orthant/kernels/matrix/tiles.hpp"

#include "orthant/kernels/rounding.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/matrix/tiles.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/direct/aside_inl.hpp"
#include "orthant/kernels/direct/tail_inl.hpp"

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::matrix::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;
using direct::HWY_NAMESPACE::Aside;
using direct::HWY_NAMESPACE::Tail;

constexpr int vectors = 2;    // of a panel
constexpr int base_rows = 3;  // rows per base pointer: [base], [base + row], [base + 2 * row]

/// How many lanes of a vector `left` items fill.
HWY_INLINE std::int64_t lanes_within(std::int64_t left) {
  return std::clamp<std::int64_t>(left, 0, static_cast<std::int64_t>(hn::Lanes(Tag())));
}

/// Starts to fetch what store_sums will read and write.
template <int M>
HWY_INLINE void fetch_sums(const TileCall& call) {
#pragma GCC unroll 14
  for (int m = 0; m < M; ++m) {
    for (std::int64_t n = 0; n < call.columns; n += line_floats) hwy::Prefetch(call.c + m * call.c_row + n);
  }
}

/// Adds what c holds, the bias and the slope.
template <int M>
HWY_INLINE void finish_sums(const TileCall& call, Vector (&sums)[M][vectors]) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const bool finish = call.last && (call.bias != nullptr || call.slope != 1.0F);
  if (call.first && !finish) return;
  const Vector slope = hn::Set(tag, call.slope);
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    const Tail tail(lanes_within(call.columns - v * lanes));
    const Vector bias = finish && call.bias != nullptr ? tail.load(call.bias + v * lanes) : hn::Zero(tag);
#pragma GCC unroll 14
    for (int m = 0; m < M; ++m) {
      if (!call.first) sums[m][v] = hn::Add(sums[m][v], tail.load(call.c + m * call.c_row + v * lanes));
      if (!finish) continue;
      const Vector value = hn::Add(sums[m][v], bias);
      sums[m][v] = hn::IfThenElse(hn::Lt(value, hn::Zero(tag)), hn::Mul(value, slope), value);
    }
  }
}

/// Row by row: what goes around the cache fills one cache line after the other.
template <int M, class Store>
HWY_INLINE void store_rows(const TileCall& call, const Vector (&sums)[M][vectors], Store store) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Tag()));
#pragma GCC unroll 14
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) store(sums[m][v], call.c + m * call.c_row + v * lanes, v);
  }
}

template <int M>
HWY_INLINE void store_sums(const TileCall& call, Vector (&sums)[M][vectors]) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  finish_sums<M>(call, sums);
  if (call.stream) {
    store_rows<M>(call, sums, [&](Vector value, float* to, int) HWY_ATTR { hn::Stream(value, tag, to); });
  } else if (call.columns == vectors * lanes) {
    store_rows<M>(call, sums, [&](Vector value, float* to, int) HWY_ATTR { hn::StoreU(value, tag, to); });
  } else {
    const Tail tails[vectors] = {Tail(lanes_within(call.columns)), Tail(lanes_within(call.columns - lanes))};
    store_rows<M>(call, sums, [&](Vector value, float* to, int v) HWY_ATTR { tails[v].store(value, to); });
  }
}

template <int M, bool by_runs>
void tile(const TileCall& call) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  constexpr int bases = (M + base_rows - 1) / base_rows;
  Vector sums[M][vectors];
#pragma GCC unroll 28
  for (int i = 0; i < M * vectors; ++i) sums[i / vectors][i % vectors] = hn::Zero(tag);
  if (!call.stream) fetch_sums<M>(call);
  const std::int64_t row = call.a_row;
  const std::int64_t step = call.a_step;
  const float* base[bases];
#pragma GCC unroll 5
  for (int i = 0; i < bases; ++i) base[i] = call.a + i * base_rows * row;
  const float* b = call.b;
  const float* ahead = call.ahead;
  alignas(64) float memory[M * vectors * hn::MaxLanes(tag)];
  Aside<M, vectors> aside(memory);
  for (std::int64_t left = call.depth; left > 0; left -= call.ahead_lines, ahead += call.ahead_row) {
    const float* line = ahead;
    if constexpr (by_runs) {
      if (left < call.depth) aside.take(sums);
    }
    for (const float* end = b + std::min(left, call.ahead_lines) * vectors * lanes; b != end; b += vectors * lanes) {
      hwy::Prefetch(line);
      line += call.ahead_step;
      Vector columns[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) columns[v] = hn::LoadU(tag, b + v * lanes);
#pragma GCC unroll 14
      for (int m = 0; m < M; ++m) {
        const Vector value = hn::Set(tag, base[m / base_rows][(m % base_rows) * row]);
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) sums[m][v] = hn::MulAdd(value, columns[v], sums[m][v]);
      }
#pragma GCC unroll 5
      for (int i = 0; i < bases; ++i) base[i] += step;
    }
  }
  if constexpr (by_runs) aside.add_to(sums);
  store_sums<M>(call, sums);
}

constexpr int rows_in_registers = HWY_TARGET == HWY_AVX3 ? 14 : 6;

template <int... M>
void fill(Tiles& tiles, std::integer_sequence<int, M...>) {
  tiles.most_rows = sizeof...(M);
  ((tiles.rows[M] = &tile<M + 1, false>), ...);
  ((tiles.rows_by_runs[M] = &tile<M + 1, true>), ...);
}

Tiles make_tiles() {
  Tiles tiles;
  tiles.panel = vectors * static_cast<int>(hn::Lanes(Tag()));
  fill(tiles, std::make_integer_sequence<int, rows_in_registers>());
  return tiles;
}

/// Into the second-level cache: rows whose distance is a power of two would push each other out of the first.
HWY_INLINE void fetch_early(const float* from) { __builtin_prefetch(from, 0, 2); }

constexpr std::int64_t rows_early = 4;  // that packing fetches ahead; the next block of weights follows

void pack_rows(const PackCall& call) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  for (std::int64_t k = 0; k < call.depth; ++k) {
    float* to = call.to + k * call.panel;
    for (std::int64_t n = 0; n < call.columns; n += line_floats)
      fetch_early(call.from + (k + rows_early) * call.step + n);
    for (std::int64_t begin = 0; begin < call.columns; begin += call.panel, to += call.panel_step) {
      const float* from = call.from + k * call.step + begin;
      const std::int64_t columns = std::min(call.panel, call.columns - begin);
      std::int64_t n = 0;
      for (; n + lanes <= columns; n += lanes) hn::StoreU(hn::LoadU(tag, from + n), tag, to + n);
      for (; n < call.panel; n += lanes) {
        Tail(lanes_within(call.panel - n)).store(Tail(lanes_within(columns - n)).load(from + n), to + n);
      }
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
/// As wide as shuffles are: four columns for every 128 bits.
using Block = hn::CappedTag<float, 8>;
constexpr auto block = static_cast<std::int64_t>(hn::MaxLanes(Block()));

HWY_INLINE hn::Vec<Block> load_four(const float* from, std::int64_t step) {
  const hn::Full128<float> four;
#if HWY_TARGET == HWY_SSE4
  return hn::LoadU(four, from);
#else
  return hn::Combine(Block(), hn::LoadU(four, from + 4 * step), hn::LoadU(four, from));
#endif
}

/// to[j][i] = from[i][j] for `block` columns i and four j.
HWY_INLINE void transpose_block(const float* from, std::int64_t step, float* to, std::int64_t panel) {
  const Block tag;
  const auto a = load_four(from, step);
  const auto b = load_four(from + step, step);
  const auto c = load_four(from + 2 * step, step);
  const auto d = load_four(from + 3 * step, step);
  const auto ac_low = hn::InterleaveLower(tag, a, c);
  const auto bd_low = hn::InterleaveLower(tag, b, d);
  const auto ac_high = hn::InterleaveUpper(tag, a, c);
  const auto bd_high = hn::InterleaveUpper(tag, b, d);
  hn::StoreU(hn::InterleaveLower(tag, ac_low, bd_low), tag, to);
  hn::StoreU(hn::InterleaveUpper(tag, ac_low, bd_low), tag, to + panel);
  hn::StoreU(hn::InterleaveLower(tag, ac_high, bd_high), tag, to + 2 * panel);
  hn::StoreU(hn::InterleaveUpper(tag, ac_high, bd_high), tag, to + 3 * panel);
}
#else
constexpr std::int64_t block = 1;
#endif

/// `block` columns of a panel from column n on, cache line by cache line.
void pack_some_columns(const PackCall& call, std::int64_t n) {
  const float* from = call.from + n * call.step;
  float* to = call.to + n;
  std::int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; k + 4 <= call.depth; k += 4) transpose_block(from + k, call.step, to + k * call.panel, call.panel);
#endif
  for (; k < call.depth; ++k) {
    for (std::int64_t i = 0; i < block; ++i) to[k * call.panel + i] = from[i * call.step + k];
  }
}

void pack_columns(const PackCall& call) {
  const std::int64_t whole = call.columns / block * block;
  for (std::int64_t n = 0; n < whole; n += block) {
    for (std::int64_t column = n + block; column < n + 2 * block; ++column) {
      for (std::int64_t k = 0; k < call.depth; k += line_floats) fetch_early(call.from + column * call.step + k);
    }
    pack_some_columns(call, n);
  }
  for (std::int64_t n = whole; n < call.panel; ++n) {
    for (std::int64_t k = 0; k < call.depth; ++k)
      call.to[k * call.panel + n] = n < call.columns ? call.from[n * call.step + k] : 0.0F;
  }
}

}  // namespace orthant::kernels::matrix::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::matrix {

HWY_EXPORT(make_tiles);
HWY_EXPORT(pack_rows);
HWY_EXPORT(pack_columns);

const Tiles& tiles() {
  static const Tiles made = HWY_DYNAMIC_DISPATCH(make_tiles)();
  return made;
}

void multiply_rows(TileCall call, std::int64_t rows, Ahead ahead) {
  const Tiles& all = tiles();
  for (std::int64_t count = ceil_div(rows, all.most_rows); count > 0; --count) {
    const std::int64_t taken = ceil_div(rows, count);
    if (ahead.calls-- > 0) {
      call.ahead = ahead.from;
      call.ahead_step = ahead.step;
      call.ahead_row = ahead.row;
      call.ahead_lines = ahead.lines;
      ahead.from += ahead.next;
    } else {
      call.ahead = call.a + taken * call.a_row;
      call.ahead_step = line_floats;
      call.ahead_row = call.a_row;
      call.ahead_lines = ceil_div(call.depth, line_floats);
    }
    all.rows[static_cast<std::size_t>(taken - 1)](call);
    call.a += taken * call.a_row;
    call.c += taken * call.c_row;
    rows -= taken;
  }
}

void pack(const PackCall& call) { HWY_DYNAMIC_DISPATCH(pack_rows)(call); }
void pack_transposed(const PackCall& call) { HWY_DYNAMIC_DISPATCH(pack_columns)(call); }

}  // namespace orthant::kernels::matrix
#endif
