#include "orthant/kernels/direct/tiles.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/direct/tiles.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/direct/aside_inl.hpp"
#include "orthant/kernels/direct/tail_inl.hpp"

#include <utility>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::direct::HWY_NAMESPACE {

// Pixels per base pointer: they are addressed as [base], [base + step], [base + 2 * step].
constexpr int base_pixels = 3;

template <int P, int V>
HWY_INLINE void zero(Vector (&sum)[P][V]) {
#pragma GCC unroll 32
  for (int i = 0; i < P * V; ++i) sum[i / V][i % V] = hn::Zero(Tag());
}

template <int P, int V>
HWY_INLINE void add_dst(const TileCall& call, Vector (&sum)[P][V]) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const Tail tail(call.tail);
#pragma GCC unroll 32
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const float* from = call.dst + p * call.dst_step + v * lanes;
      sum[p][v] = hn::Add(sum[p][v], v + 1 < V ? hn::LoadU(tag, from) : tail.load(from));
    }
  }
}

struct Whole {
  HWY_INLINE void operator()(Vector value, float* to, bool) const { hn::StoreU(value, Tag(), to); }
};

struct Streamed {
  HWY_INLINE void operator()(Vector value, float* to, bool) const { hn::Stream(value, Tag(), to); }
};

struct Masked {
  Tail tail;
  HWY_INLINE void operator()(Vector value, float* to, bool last) const {
    if (last) {
      tail.store(value, to);
    } else {
      hn::StoreU(value, Tag(), to);
    }
  }
};

template <int P, int V, class Store>
HWY_INLINE void store_all(const TileCall& call, const Vector (&sum)[P][V], Store store) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Tag()));
#pragma GCC unroll 32
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(sum[p][v], call.dst + p * call.dst_step + v * lanes, v + 1 == V);
  }
}

template <int P, int V>
HWY_INLINE void finish(const TileCall& call, Vector (&sum)[P][V]) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  if (!call.first) add_dst<P, V>(call, sum);
  if (call.last) {
    const Vector floor = hn::Set(tag, call.floor);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Vector bias = hn::LoadU(tag, call.bias + v * lanes);
#pragma GCC unroll 32
      for (int p = 0; p < P; ++p) sum[p][v] = hn::Max(floor, hn::Add(sum[p][v], bias));
    }
  }
  if (call.stream) {
    store_all<P, V>(call, sum, Streamed{});
  } else if (call.tail == lanes) {
    store_all<P, V>(call, sum, Whole{});
  } else {
    store_all<P, V>(call, sum, Masked{Tail(call.tail)});
  }
}

template <int P, int V>
void tile(const TileCall& call) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  constexpr int bases = (P + base_pixels - 1) / base_pixels;
  Vector sum[P][V];
  zero<P, V>(sum);
  Aside<P, V> aside(call.aside);
  const std::int64_t step = call.src_step;
  Fetch next = call.fetch;
  for (std::int64_t r = 0; r < call.run_count;) {
    if (r > 0) aside.take(sum);
    do {
      const Run run = call.runs[r];
      const float* base[bases];
#pragma GCC unroll 16
      for (int b = 0; b < bases; ++b) base[b] = call.src + run.src + b * base_pixels * step;
      const float* weights = call.weights + run.weights;
      for (const float* end = weights + run.steps * V * lanes; weights != end; weights += V * lanes) {
        __builtin_prefetch(next.from, 0, 2);
        next.from += next.step;
        Vector weight[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) weight[v] = hn::LoadU(tag, weights + v * lanes);
#pragma GCC unroll 32
        for (int p = 0; p < P; ++p) {
          const Vector value = hn::Set(tag, base[p / base_pixels][(p % base_pixels) * step]);
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) sum[p][v] = hn::MulAdd(value, weight[v], sum[p][v]);
        }
#pragma GCC unroll 16
        for (int b = 0; b < bases; ++b) ++base[b];
      }
    } while (++r < call.run_count && !call.runs[r].apart);
  }
  aside.add_to(sum);
  finish<P, V>(call, sum);
}

// Source pixel x contributes to output x - k through tap k, so that one load serves all taps.
template <int P>
void slide(const TileCall& call) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  constexpr int pixels = P + slide_taps - 1;
  constexpr int third = (pixels + 2) / 3;  // three distant pixels take turns: their sums do not wait for each other
  constexpr int bases = (pixels + base_pixels - 1) / base_pixels;
  Vector sum[P][1];
  zero<P, 1>(sum);
  Aside<P, 1> aside(call.aside);
  const std::int64_t step = call.src_step;
  const std::int64_t tap = call.tap_step;
  Fetch next = call.fetch;
  for (std::int64_t r = 0; r < call.run_count;) {
    if (r > 0) aside.take(sum);
    do {
      const Run run = call.runs[r];
      const float* base[bases];
#pragma GCC unroll 16
      for (int b = 0; b < bases; ++b) base[b] = call.src + run.src + b * base_pixels * step;
      const float* weights = call.weights + run.weights;
      for (const float* end = weights + run.steps * lanes; weights != end; weights += lanes) {
        __builtin_prefetch(next.from, 0, 2);
        next.from += next.step;
        Vector weight[slide_taps];
#pragma GCC unroll 4
        for (int k = 0; k < slide_taps; ++k) weight[k] = hn::LoadU(tag, weights + k * tap);
#pragma GCC unroll 32
        for (int index = 0; index < 3 * third; ++index) {
          const int x = index % 3 * third + index / 3;
          if (x >= pixels) continue;
          const Vector value = hn::Set(tag, base[x / base_pixels][(x % base_pixels) * step]);
#pragma GCC unroll 4
          for (int k = 0; k < slide_taps; ++k) {
            if (x >= k && x - k < P) sum[x - k][0] = hn::MulAdd(value, weight[k], sum[x - k][0]);
          }
        }
#pragma GCC unroll 16
        for (int b = 0; b < bases; ++b) ++base[b];
      }
    } while (++r < call.run_count && !call.runs[r].apart);
  }
  aside.add_to(sum);
  finish<P, 1>(call, sum);
}

// v sums per pixel, v weights and one value have to fit into the registers.
constexpr int registers = HWY_TARGET == HWY_AVX3 ? 32 : 16;
constexpr int rows_of(int vectors) { return vectors == 1 ? registers - 4 : (registers - 1 - vectors) / vectors; }

template <int V, int... P>
void fill(Tiles& tiles, std::integer_sequence<int, P...>) {
  tiles.rows[V - 1] = sizeof...(P);
  ((tiles.correlation[V - 1][P] = &tile<P + 1, V>), ...);
}

template <int... P>
void fill_slide(Tiles& tiles, std::integer_sequence<int, P...>) {
  tiles.slide_rows = sizeof...(P);
  ((tiles.slide[P] = &slide<P + 1>), ...);
}

Tiles make_tiles() {
  Tiles tiles;
  tiles.lanes = static_cast<int>(hn::Lanes(Tag()));
  fill<1>(tiles, std::make_integer_sequence<int, rows_of(1)>());
  fill<2>(tiles, std::make_integer_sequence<int, rows_of(2)>());
  fill<3>(tiles, std::make_integer_sequence<int, rows_of(3)>());
  fill<4>(tiles, std::make_integer_sequence<int, rows_of(4)>());
  fill_slide(tiles, std::make_integer_sequence<int, registers - 6>());
  return tiles;
}

}  // namespace orthant::kernels::direct::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::direct {

HWY_EXPORT(make_tiles);

Tiles correlation_tiles() { return HWY_DYNAMIC_DISPATCH(make_tiles)(); }

}  // namespace orthant::kernels::direct
#endif
