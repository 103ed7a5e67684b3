#include "orthant/kernels/direct_tiles.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/direct_tiles.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <utility>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::direct::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

// Pixels per base pointer: reached as [base], [base + step], [base + 2 * step].
constexpr int base_pixels = 3;

template <int P, int V>
HWY_INLINE void start(const TileCall& call, Vector (&sum)[P][V]) {
  const Tag tag;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const auto mask = hn::FirstN(tag, static_cast<std::size_t>(call.tail));
#pragma GCC unroll 32
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const float* from = call.dst + p * call.dst_step + v * lanes;
      if (call.first) {
        sum[p][v] = hn::Zero(tag);
      } else if (v + 1 < V) {
        sum[p][v] = hn::LoadU(tag, from);
      } else {
        sum[p][v] = hn::MaskedLoad(mask, tag, from);
      }
    }
  }
}

template <int P, int V>
HWY_INLINE void finish(const TileCall& call, Vector (&sum)[P][V]) {
  const Tag tag;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const auto mask = hn::FirstN(tag, static_cast<std::size_t>(call.tail));
  const Vector floor = hn::Set(tag, call.floor);
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const Vector bias = call.last ? hn::LoadU(tag, call.bias + v * lanes) : hn::Zero(tag);
#pragma GCC unroll 32
    for (int p = 0; p < P; ++p) {
      Vector value = sum[p][v];
      if (call.last) value = hn::Max(floor, hn::Add(value, bias));
      float* to = call.dst + p * call.dst_step + v * lanes;
      if (v + 1 < V || call.tail == lanes) {
        hn::StoreU(value, tag, to);
      } else {
        hn::BlendedStore(value, mask, tag, to);
      }
    }
  }
}

template <int P, int V>
void tile(const TileCall& call) {
  const Tag tag;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  constexpr int bases = (P + base_pixels - 1) / base_pixels;
  Vector sum[P][V];
  start<P, V>(call, sum);
  const std::int64_t step = call.src_step;
  for (std::int64_t r = 0; r < call.run_count; ++r) {
    const float* base[bases];
#pragma GCC unroll 16
    for (int b = 0; b < bases; ++b) base[b] = call.src + call.runs[r].src + b * base_pixels * step;
    const float* weights = call.weights + call.runs[r].weights;
    for (const float* end = weights + call.run_length * V * lanes; weights != end; weights += V * lanes) {
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
  }
  finish<P, V>(call, sum);
}

// v sums per pixel, v weights and one value have to fit into the registers.
constexpr int registers = HWY_TARGET == HWY_AVX3 ? 32 : 16;
constexpr int rows_of(int vectors) { return vectors == 1 ? registers - 4 : (registers - 1 - vectors) / vectors; }

template <int V, int... P>
void fill(Tiles& tiles, std::integer_sequence<int, P...>) {
  tiles.rows[V - 1] = sizeof...(P);
  ((tiles.gather[V - 1][P] = &tile<P + 1, V>), ...);
}

Tiles make_tiles() {
  Tiles tiles;
  tiles.lanes = static_cast<int>(hn::Lanes(Tag()));
  fill<1>(tiles, std::make_integer_sequence<int, rows_of(1)>());
  fill<2>(tiles, std::make_integer_sequence<int, rows_of(2)>());
  fill<3>(tiles, std::make_integer_sequence<int, rows_of(3)>());
  fill<4>(tiles, std::make_integer_sequence<int, rows_of(4)>());
  return tiles;
}

}  // namespace orthant::kernels::direct::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::direct {

HWY_EXPORT(make_tiles);

const Tiles& gather_tiles() {
  static const Tiles tiles = HWY_DYNAMIC_DISPATCH(make_tiles)();
  return tiles;
}

}  // namespace orthant::kernels::direct
#endif
