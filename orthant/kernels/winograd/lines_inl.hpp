// Compiled once per target: include it after hwy/foreach_target.h.
#if defined(ORTHANT_KERNELS_WINOGRAD_LINES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ORTHANT_KERNELS_WINOGRAD_LINES_INL_HPP
#undef ORTHANT_KERNELS_WINOGRAD_LINES_INL_HPP
#else
#define ORTHANT_KERNELS_WINOGRAD_LINES_INL_HPP
#endif

#include <hwy/highway.h>

#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::winograd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

// One-dimensional maps: x has `in` vectors, y receives `out`.
struct SrcLine {
  static constexpr int in = 4, out = 4;
  static HWY_INLINE void apply(const Vector* x, Vector* y) {
    y[0] = hn::Sub(x[0], x[2]);
    y[1] = hn::Add(x[1], x[2]);
    y[2] = hn::Sub(x[2], x[1]);
    y[3] = hn::Sub(x[1], x[3]);
  }
};

struct WeightsLine {
  static constexpr int in = 3, out = 4;
  static HWY_INLINE void apply(const Vector* x, Vector* y) {
    const Vector half = hn::Set(Tag(), 0.5F);
    const Vector even = hn::Mul(half, hn::Add(x[0], x[2]));
    const Vector odd = hn::Mul(half, x[1]);
    y[0] = x[0];
    y[1] = hn::Add(even, odd);
    y[2] = hn::Sub(even, odd);
    y[3] = x[2];
  }
};

struct DstLine {
  static constexpr int in = 4, out = 2;
  static HWY_INLINE void apply(const Vector* x, Vector* y) {
    y[0] = hn::Add(x[0], hn::Add(x[1], x[2]));
    y[1] = hn::Sub(hn::Sub(x[1], x[2]), x[3]);
  }
};

struct DiffLine {
  static constexpr int in = 2, out = 4;
  static HWY_INLINE void apply(const Vector* x, Vector* y) {
    const Vector half = hn::Set(Tag(), 0.5F);
    y[0] = x[0];
    y[1] = hn::Mul(half, hn::Add(x[0], x[1]));
    y[2] = hn::Mul(half, hn::Sub(x[0], x[1]));
    y[3] = x[1];
  }
};

/// DiffLine without its halves, for sums that are halved at the end.
struct DiffSumsLine {
  static constexpr int in = 2, out = 4;
  static HWY_INLINE void apply(const Vector* x, Vector* y) {
    y[0] = x[0];
    y[1] = hn::Add(x[0], x[1]);
    y[2] = hn::Sub(x[0], x[1]);
    y[3] = x[1];
  }
};

struct DiffWeightsLine {
  static constexpr int in = 4, out = 3;
  static HWY_INLINE void apply(const Vector* x, Vector* y) {
    const Vector sum = hn::Add(x[1], x[2]);
    y[0] = hn::Add(x[0], sum);
    y[1] = hn::Sub(x[1], x[2]);
    y[2] = hn::Sub(sum, x[3]);
  }
};

struct Identity {
  static constexpr int in = 1, out = 1;
  static HWY_INLINE void apply(const Vector* x, Vector* y) { y[0] = x[0]; }
};

/// Applies the h and w maps to one depth of cells.
template <class H, class W, class Load>
HWY_INLINE void map_plane(Load load, Vector (&y)[H::out][W::out]) {
  Vector rows[W::out][H::in];
#pragma GCC unroll 4
  for (int h = 0; h < H::in; ++h) {
    Vector x[W::in];
    Vector row[W::out];
#pragma GCC unroll 4
    for (int w = 0; w < W::in; ++w) x[w] = load(h * W::in + w);
    W::apply(x, row);
#pragma GCC unroll 4
    for (int w = 0; w < W::out; ++w) rows[w][h] = row[w];
  }
#pragma GCC unroll 4
  for (int w = 0; w < W::out; ++w) {
    Vector column[H::out];
    H::apply(rows[w], column);
#pragma GCC unroll 4
    for (int h = 0; h < H::out; ++h) y[h][w] = column[h];
  }
}

/// All three maps for one vector of channels; load(i) and store(j, value) reach the cells.
template <class D, class H, class W, class Load, class Store>
HWY_INLINE void map_box(Load load, Store store) {
  constexpr int in_plane = H::in * W::in;
  constexpr int out_plane = H::out * W::out;
  Vector planes[out_plane][D::in];
#pragma GCC unroll 4
  for (int d = 0; d < D::in; ++d) {
    Vector y[H::out][W::out];
    map_plane<H, W>([&](int i) HWY_ATTR { return load(d * in_plane + i); }, y);
#pragma GCC unroll 16
    for (int i = 0; i < out_plane; ++i) planes[i][d] = y[i / W::out][i % W::out];
  }
#pragma GCC unroll 16
  for (int i = 0; i < out_plane; ++i) {
    Vector line[D::out];
    D::apply(planes[i], line);
#pragma GCC unroll 4
    for (int d = 0; d < D::out; ++d) store(d * out_plane + i, line[d]);
  }
}

template <bool apply, class Line>
using If = std::conditional_t<apply, Line, Identity>;

}  // namespace orthant::kernels::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
