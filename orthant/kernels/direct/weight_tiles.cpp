#include "orthant/kernels/direct/tiles.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/direct/weight_tiles.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/direct/tail_inl.hpp"

#include <utility>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::direct::HWY_NAMESPACE {

// Prefetches into the second-level cache, because the first-level cache is full of what this call reads.
HWY_INLINE void fetch(Fetch& next) {
  __builtin_prefetch(next.from, 0, 2);
  next.from += next.step;
}

template <int T, int V>
HWY_INLINE void add_to(const WeightTileCall& call, const Vector (&sum)[T][V]) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const Tail tail(call.tail);
  const bool whole = call.tail == lanes;
#pragma GCC unroll 32
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      float* to = call.weights + t * call.weights_step + v * lanes;
      if (call.stream) {
        hn::Stream(sum[t][v], tag, to);
      } else if (whole || v + 1 < V) {
        hn::StoreU(call.add ? hn::Add(sum[t][v], hn::LoadU(tag, to)) : sum[t][v], tag, to);
      } else {
        tail.store(call.add ? hn::Add(sum[t][v], tail.load(to)) : sum[t][v], to);
      }
    }
  }
}

template <int T, int V>
void weight_tile(const WeightTileCall& call) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const Tail tail(call.tail);
  Vector sum[T][V];
#pragma GCC unroll 32
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[t][v] = hn::Zero(tag);
  }
  Fetch next_src = call.fetch_src;
  Fetch next_diff = call.fetch_diff;
  for (std::int64_t r = 0; r < call.row_count; ++r) {
    const float* src = call.src + call.rows[r].src;
    const float* diff = call.diff + call.rows[r].diff;
    for (std::int64_t x = 0; x < call.pixels; ++x, src += call.src_step, diff += call.diff_step) {
      fetch(next_src);
      fetch(next_diff);
      Vector factor[V];
#pragma GCC unroll 4
      for (int v = 0; v + 1 < V; ++v) factor[v] = hn::LoadU(tag, diff + v * lanes);
      factor[V - 1] = tail.load(diff + (V - 1) * lanes);
#pragma GCC unroll 32
      for (int t = 0; t < T; ++t) {
        const Vector value = hn::Set(tag, src[t]);
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) sum[t][v] = hn::MulAdd(value, factor[v], sum[t][v]);
      }
    }
  }
  add_to<T, V>(call, sum);
}

template <int T>
HWY_INLINE void slide_step(const float* src, const Vector (&diff)[slide_taps], Vector (&sum)[slide_taps][T]) {
  const Tag tag;
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    const Vector value = hn::Set(tag, src[t]);
#pragma GCC unroll 4
    for (int k = 0; k < slide_taps; ++k) sum[k][t] = hn::MulAdd(value, diff[k], sum[k][t]);
  }
}

// For tap k, source pixel x is multiplied by the diff of output x - k, so that one load serves all taps.
template <int T>
void slide(const WeightTileCall& call) {
  const Tag tag;
  const Tail tail(call.tail);
  Vector sum[slide_taps][T];
#pragma GCC unroll 4
  for (int k = 0; k < slide_taps; ++k) {
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) sum[k][t] = hn::Zero(tag);
  }
  Fetch next_src = call.fetch_src;
  Fetch next_diff = call.fetch_diff;
  for (std::int64_t r = 0; r < call.row_count; ++r) {
    const float* src = call.src + call.rows[r].src;
    const float* diff = call.diff + call.rows[r].diff;
    Vector last[slide_taps] = {hn::Zero(tag), hn::Zero(tag), hn::Zero(tag)};
    for (std::int64_t x = 0; x < call.pixels + slide_taps - 1; ++x, src += call.src_step, diff += call.diff_step) {
      fetch(next_src);
      fetch(next_diff);
      last[2] = last[1];
      last[1] = last[0];
      last[0] = x < call.pixels ? tail.load(diff) : hn::Zero(tag);
      slide_step<T>(src, last, sum);
    }
  }
  WeightTileCall rows = call;
#pragma GCC unroll 4
  for (int k = 0; k < slide_taps; ++k, rows.weights += call.tap_step * call.weights_step) {
    Vector column[T][1];
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) column[t][0] = sum[k][t];
    add_to<T, 1>(rows, column);
  }
}

// With few weight rows per source row, as with a single channel, the sums of several source rows are computed together.
template <int T, int V>
void stack(const WeightTileCall& call) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const Tail tail(call.tail);
  Vector sum[stack_rows][T][V];
#pragma GCC unroll 4
  for (int b = 0; b < stack_rows; ++b) {
#pragma GCC unroll 8
    for (int k = 0; k < T * V; ++k) sum[b][k / V][k % V] = hn::Zero(tag);
  }
  Fetch next_src = call.fetch_src;
  Fetch next_diff = call.fetch_diff;
  for (std::int64_t r = 0; r < call.row_count; ++r) {
    const float* src = call.src + call.rows[r].src;
    const float* diff = call.diff + call.rows[r].diff;
    for (std::int64_t x = 0; x < call.pixels; ++x, src += call.src_step, diff += call.diff_step) {
      fetch(next_src);
      fetch(next_diff);
      Vector factor[V];
#pragma GCC unroll 4
      for (int v = 0; v + 1 < V; ++v) factor[v] = hn::LoadU(tag, diff + v * lanes);
      factor[V - 1] = tail.load(diff + (V - 1) * lanes);
#pragma GCC unroll 4
      for (int b = 0; b < stack_rows; ++b) {
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          const Vector value = hn::Set(tag, src[b * call.src_row + t]);
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) sum[b][t][v] = hn::MulAdd(value, factor[v], sum[b][t][v]);
        }
      }
    }
  }
  WeightTileCall rows = call;
#pragma GCC unroll 4
  for (int b = 0; b < stack_rows; ++b, rows.weights += call.tap_step * call.weights_step) add_to<T, V>(rows, sum[b]);
}

void pixel_sum(const PixelSumCall& call) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  for (std::int64_t c = 0; c < call.channels; c += lanes) {
    const Tail tail(std::min(lanes, call.channels - c));
    Vector even = tail.load(call.sums + c);
    Vector odd = hn::Zero(tag);
    const float* diff = call.diff + c;
    std::int64_t x = 0;
    for (; x + 1 < call.pixels; x += 2, diff += 2 * call.diff_step) {
      even = hn::Add(even, tail.load(diff));
      odd = hn::Add(odd, tail.load(diff + call.diff_step));
    }
    if (x < call.pixels) even = hn::Add(even, tail.load(diff));
    tail.store(hn::Add(even, odd), call.sums + c);
  }
}

// v sums per row, v factors and one value have to fit into the registers.
constexpr int registers = HWY_TARGET == HWY_AVX3 ? 32 : 16;
constexpr int rows_of(int vectors) { return vectors == 1 ? registers - 4 : (registers - 1 - vectors) / vectors; }

template <int V, int... T>
void fill(WeightTiles& tiles, std::integer_sequence<int, T...>) {
  tiles.rows[V - 1] = sizeof...(T);
  ((tiles.outer[V - 1][T] = &weight_tile<T + 1, V>), ...);
}

template <int... T>
void fill_slide(WeightTiles& tiles, std::integer_sequence<int, T...>) {
  tiles.slide_rows = sizeof...(T);
  ((tiles.slide[T] = &slide<T + 1>), ...);
}

template <int V, int... T>
void fill_stack(WeightTiles& tiles, std::integer_sequence<int, T...>) {
  ((tiles.stack[V - 1][T] = &stack<T + 1, V>), ...);
}

WeightTiles make_weight_tiles() {
  WeightTiles tiles;
  tiles.lanes = static_cast<int>(hn::Lanes(Tag()));
  tiles.pixel_sum = &pixel_sum;
  fill<1>(tiles, std::make_integer_sequence<int, rows_of(1)>());
  fill<2>(tiles, std::make_integer_sequence<int, rows_of(2)>());
  fill<3>(tiles, std::make_integer_sequence<int, rows_of(3)>());
  fill<4>(tiles, std::make_integer_sequence<int, rows_of(4)>());
  fill_stack<1>(tiles, std::make_integer_sequence<int, WeightTiles::stack_length>());
  fill_stack<2>(tiles, std::make_integer_sequence<int, WeightTiles::stack_length>());
  fill_slide(tiles, std::make_integer_sequence<int, (registers - 5) / slide_taps>());
  return tiles;
}

}  // namespace orthant::kernels::direct::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::direct {

HWY_EXPORT(make_weight_tiles);

WeightTiles weight_tiles() { return HWY_DYNAMIC_DISPATCH(make_weight_tiles)(); }

}  // namespace orthant::kernels::direct
#endif
