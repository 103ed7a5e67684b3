#include "orthant/kernels/winograd/narrow_steps.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/winograd/narrow_steps.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>

#include "orthant/kernels/direct/tail_inl.hpp"
#include "orthant/kernels/winograd/lines_inl.hpp"

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::winograd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

constexpr std::int64_t lanes = hn::MaxLanes(Tag());

#if HWY_TARGET == HWY_AVX3

/// The four cells of a tile are one vector: cells 0 1 2 1, plus or minus cells 2 2 1 3.
template <class D, class H>
void to_points(const PatchCall& call) {
  const Tag tag;
  alignas(64) static constexpr std::int32_t first_lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 4, 5, 6, 7};
  alignas(64) static constexpr std::int32_t second_lanes[] = {8, 9, 10, 11, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15};
  alignas(64) static constexpr float signs[] = {-1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1};
  const auto first = hn::SetTableIndices(tag, first_lanes);
  const auto second = hn::SetTableIndices(tag, second_lanes);
  const Vector sign = hn::Load(tag, signs);
  for (std::int64_t t = 0; t < call.tiles; ++t) {
    const std::int64_t cell = t * 2 * narrow_channels;
    float* const points = call.points + t * tile_floats;
    map_box<D, H, Identity>(
        [&](int i) HWY_ATTR { return hn::LoadU(tag, call.rows[static_cast<std::size_t>(i)] + cell); },
        [&](int j, Vector x) HWY_ATTR {
          const Vector y = hn::MulAdd(sign, hn::TableLookupLanes(x, second), hn::TableLookupLanes(x, first));
          hn::Store(y, tag, points + j * call.line);
        });
  }
}

#elif HWY_TARGET == HWY_AVX2

/// The first two cells of a tile are one vector, the others a second one, which is mapped together with the first.
template <class D, class H>
void to_points(const PatchCall& call) {
  const Tag tag;
  alignas(32) static constexpr float signs[] = {-1, -1, -1, -1, 1, 1, 1, 1};
  const Vector sign = hn::Load(tag, signs);
  alignas(32) float mapped[D::out * H::out][lanes];
  for (std::int64_t t = 0; t < call.tiles; ++t) {
    const std::int64_t cell = t * 2 * narrow_channels;
    float* const points = call.points + t * tile_floats;
    map_box<D, H, Identity>([&](int i)
                                HWY_ATTR { return hn::LoadU(tag, call.rows[static_cast<std::size_t>(i)] + cell); },
                            [&](int j, Vector x01) HWY_ATTR { hn::Store(x01, tag, mapped[j]); });
    map_box<D, H, Identity>(
        [&](int i) HWY_ATTR { return hn::LoadU(tag, call.rows[static_cast<std::size_t>(i)] + cell + lanes); },
        [&](int j, Vector x23) HWY_ATTR {
          const Vector x01 = hn::Load(tag, mapped[j]);
          float* const to = points + j * call.line;
          hn::Store(hn::MulAdd(sign, hn::ConcatLowerLower(tag, x23, x23), x01), tag, to);
          hn::Store(hn::Sub(hn::ConcatUpperLower(tag, x01, x23), hn::ConcatUpperUpper(tag, x23, x01)), tag, to + lanes);
        });
  }
}

#else

/// All four points in w of one tile and line.
HWY_INLINE void map_w(const float* cells, float* points) {
  const hn::FixedTag<float, narrow_channels> tag;
  const auto x0 = hn::LoadU(tag, cells);
  const auto x1 = hn::LoadU(tag, cells + narrow_channels);
  const auto x2 = hn::LoadU(tag, cells + 2 * narrow_channels);
  const auto x3 = hn::LoadU(tag, cells + 3 * narrow_channels);
  hn::StoreU(hn::Sub(x0, x2), tag, points);
  hn::StoreU(hn::Add(x1, x2), tag, points + narrow_channels);
  hn::StoreU(hn::Sub(x2, x1), tag, points + 2 * narrow_channels);
  hn::StoreU(hn::Sub(x1, x3), tag, points + 3 * narrow_channels);
}

template <class D, class H>
void to_points(const PatchCall& call) {
  const Tag tag;
  constexpr int lines = D::out * H::out;
  alignas(64) float mapped[lines][tile_floats];
  for (std::int64_t t = 0; t < call.tiles; ++t) {
    const std::int64_t cell = t * 2 * narrow_channels;
    for (std::int64_t x = 0; x < tile_floats; x += lanes) {
      map_box<D, H, Identity>(
          [&](int i) HWY_ATTR { return hn::LoadU(tag, call.rows[static_cast<std::size_t>(i)] + cell + x); },
          [&](int j, Vector value) HWY_ATTR { hn::StoreU(value, tag, mapped[j] + x); });
    }
    for (int line = 0; line < lines; ++line) map_w(mapped[line], call.points + line * call.line + t * tile_floats);
  }
}

#endif

/// T tiles of one line.
template <int T>
void multiply_tiles(const ProductCall& call, const float* points, const float* weights, float* sums) {
  const Tag tag;
  Vector sum[T][points_w];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
    for (int p = 0; p < points_w; ++p) sum[t][p] = hn::Zero(tag);
  }
  for (std::int64_t c = 0; c < call.channels; ++c, ++points, weights += points_w * lanes) {
    Vector weight[points_w];
#pragma GCC unroll 4
    for (int p = 0; p < points_w; ++p) weight[p] = hn::Load(tag, weights + p * lanes);
    if constexpr (HWY_TARGET == HWY_AVX3) {
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
        for (int p = 0; p < points_w; ++p) {
          const Vector value = hn::Set(tag, points[t * tile_floats + p * narrow_channels]);
          sum[t][p] = hn::MulAdd(value, weight[p], sum[t][p]);
        }
      }
    } else {  // point by point: with few registers a weight is loaded when its turn comes
#pragma GCC unroll 4
      for (int p = 0; p < points_w; ++p) {
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          const Vector value = hn::Set(tag, points[t * tile_floats + p * narrow_channels]);
          sum[t][p] = hn::MulAdd(value, weight[p], sum[t][p]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    Vector cells[2];
    DstLine::apply(sum[t], cells);
    hn::Store(cells[0], tag, sums + 2 * t * lanes);
    hn::Store(cells[1], tag, sums + (2 * t + 1) * lanes);
  }
}

using TilesFunction = void (*)(const ProductCall&, const float*, const float*, float*);

template <int... T>
constexpr std::array<TilesFunction, sizeof...(T)> tiles_functions(std::integer_sequence<int, T...>) {
  return {&multiply_tiles<T + 1>...};
}

// Four sums per tile and four weights, or one at a time, have to fit into the registers.
constexpr int product_tiles = HWY_TARGET == HWY_AVX3 ? 6 : 3;

void multiply(const ProductCall& call) {
  static constexpr auto functions = tiles_functions(std::make_integer_sequence<int, product_tiles>());
  const std::int64_t groups = (call.tiles + product_tiles - 1) / product_tiles;
  for (std::int64_t line = 0; line < call.lines; ++line) {
    const float* points = call.points + line * call.line;
    const float* weights = call.weights + line * call.channels * points_w * lanes;
    float* sums = call.sums + line * call.sums_line;
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t count = (call.tiles + groups - 1 - group) / groups;
      functions[static_cast<std::size_t>(count - 1)](call, points, weights, sums);
      points += count * tile_floats;
      sums += count * 2 * lanes;
    }
  }
}

struct StoreWhole {
  HWY_INLINE void operator()(Vector value, float* to) const { hn::StoreU(value, Tag(), to); }
};

struct StoreAround {
  HWY_INLINE void operator()(Vector value, float* to) const { hn::Stream(value, Tag(), to); }
};

struct StoreTail {
  direct::HWY_NAMESPACE::Tail tail;
  HWY_INLINE void operator()(Vector value, float* to) const { tail.store(value, to); }
};

template <class D, class H, class Store>
HWY_INLINE void finish_with(const FinishCall& call, Store store) {
  const Tag tag;
  const Vector zero = hn::Zero(tag);
  const Vector slope = hn::Set(tag, call.slope);
  const Vector bias = call.bias == nullptr ? zero : direct::HWY_NAMESPACE::Tail(call.tail).load(call.bias);
  for (std::int64_t cell = 0; cell < call.dst.cells; ++cell) {
    const float* from = call.sums + cell * lanes;
    const std::int64_t to = cell * call.dst.step;
    map_box<D, H, Identity>([&](int i) HWY_ATTR { return hn::Load(tag, from + i * call.sums_line); },
                            [&](int j, Vector value) HWY_ATTR {
                              float* const row = call.dst.first[static_cast<std::size_t>(j)];
                              if (row == nullptr) return;
                              value = hn::Add(value, bias);
                              store(hn::MulAdd(slope, hn::Min(value, zero), hn::Max(value, zero)), row + to);
                            });
  }
}

template <class D, class H>
void finish(const FinishCall& call) {
  if (call.stream) {
    finish_with<D, H>(call, StoreAround{});
  } else if (call.tail == lanes) {
    finish_with<D, H>(call, StoreWhole{});
  } else {
    finish_with<D, H>(call, StoreTail{direct::HWY_NAMESPACE::Tail(call.tail)});
  }
}

/// Point P of two cells of diff_dst, or the only one; load(i) reads cell i.
template <int P, class Load>
HWY_INLINE Vector diff_point(Load load) {
  if constexpr (P <= 0) return load(0);
  if constexpr (P == 1) return hn::Add(load(0), load(1));
  if constexpr (P == 2) return hn::Sub(load(0), load(1));
  return load(1);
}

/// C channels of the line (D, H); a dim with one tap has point -1.
template <int D, int H, int C>
HWY_INLINE void outer_line(const OuterCall& call, const float* points, float* weights) {
  const Tag tag;
  Vector sum[C][points_w];
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
    for (int p = 0; p < points_w; ++p) sum[c][p] = hn::Zero(tag);
  }
  const std::array<const float*, 4> rows = call.diff;
  for (std::int64_t t = 0; t < call.tiles; ++t, points += tile_floats) {
    Vector cells[2];
#pragma GCC unroll 2
    for (int w = 0; w < 2; ++w) {
      const std::int64_t cell = (2 * t + w) * call.diff_step;
      cells[w] = diff_point<D>([&](int d) HWY_ATTR {
        return diff_point<H>([&](int h) HWY_ATTR {
          return hn::LoadU(tag, rows[static_cast<std::size_t>(H < 0 ? d : 2 * d + h)] + cell);
        });
      });
    }
    // The last lines bring the next stretch's cells into the cache, each those of one row.
    if constexpr (D == 3 && H >= 0) {
      const float* const next = rows[H] + (2 * call.tiles + 2 * t) * call.diff_step;
      __builtin_prefetch(next);
      __builtin_prefetch(next + call.diff_step);
    }
    Vector point[points_w];
    DiffSumsLine::apply(cells, point);
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
      for (int p = 0; p < points_w; ++p)
        sum[c][p] = hn::MulAdd(hn::Set(tag, points[p * narrow_channels + c]), point[p], sum[c][p]);
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
    for (int p = 0; p < points_w; ++p) {
      float* const to = weights + (c * points_w + p) * lanes;
      hn::Store(hn::Add(hn::Load(tag, to), sum[c][p]), tag, to);
    }
  }
}

// Four sums per channel have to fit into the registers.
constexpr std::int64_t outer_channels = HWY_TARGET == HWY_AVX3 ? 4 : 2;

template <int D, int H>
void outer_lines(const OuterCall& call, std::int64_t line) {
  const float* points = call.points + line * call.line;
  float* weights = call.weights + line * call.channels * points_w * lanes;
  for (std::int64_t c = 0; c < call.channels; c += outer_channels) {
    float* const to = weights + c * points_w * lanes;
    switch (std::min(outer_channels, call.channels - c)) {
      case 4: outer_line<D, H, 4>(call, points + c, to); break;
      case 3: outer_line<D, H, 3>(call, points + c, to); break;
      case 2: outer_line<D, H, 2>(call, points + c, to); break;
      default: outer_line<D, H, 1>(call, points + c, to);
    }
  }
}

template <int D, bool three_h>
HWY_INLINE void outer_plane(const OuterCall& call, std::int64_t line) {
  if constexpr (three_h) {
    outer_lines<D, 0>(call, line);
    outer_lines<D, 1>(call, line + 1);
    outer_lines<D, 2>(call, line + 2);
    outer_lines<D, 3>(call, line + 3);
  } else {
    outer_lines<D, -1>(call, line);
  }
}

template <bool three_d, bool three_h>
void outer(const OuterCall& call) {
  constexpr std::int64_t plane = three_h ? points_w : 1;
  if constexpr (three_d) {
    outer_plane<0, three_h>(call, 0);
    outer_plane<1, three_h>(call, plane);
    outer_plane<2, three_h>(call, 2 * plane);
    outer_plane<3, three_h>(call, 3 * plane);
  } else {
    outer_plane<-1, three_h>(call, 0);
  }
}

template <bool D, bool H>
void fill(NarrowSteps& steps) {
  constexpr std::size_t entry = (D ? 2 : 0) + (H ? 1 : 0);
  steps.to_points[entry] = &to_points<If<D, SrcLine>, If<H, SrcLine>>;
  steps.finish[entry] = &finish<If<D, DstLine>, If<H, DstLine>>;
  steps.outer[entry] = &outer<D, H>;
}

NarrowSteps make_steps() {
  NarrowSteps steps;
  steps.lanes = static_cast<int>(lanes);
  fill<false, false>(steps);
  fill<false, true>(steps);
  fill<true, false>(steps);
  fill<true, true>(steps);
  steps.multiply = &multiply;
  return steps;
}

#else

NarrowSteps make_steps() { return {}; }

#endif

}  // namespace orthant::kernels::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::winograd {

HWY_EXPORT(make_steps);

NarrowSteps narrow_steps() { return HWY_DYNAMIC_DISPATCH(make_steps)(); }

}  // namespace orthant::kernels::winograd
#endif
