// Compiled once per target: include it after hwy/foreach_target.h.
#if defined(ORTHANT_KERNELS_WINOGRAD_LINES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ORTHANT_KERNELS_WINOGRAD_LINES_INL_HPP
#undef ORTHANT_KERNELS_WINOGRAD_LINES_INL_HPP
#else
#define ORTHANT_KERNELS_WINOGRAD_LINES_INL_HPP
#endif

#include <hwy/highway.h>

#include "orthant/kernels/winograd/transforms.hpp"

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

/// The maps of a line of six points: 0, a, -a, b, -b and infinity. These a and b have the least rounding errors of the
/// pairs that were tried (docs/results/winograd.md), and no product of them that occurs here is rounded itself.
struct SixPoints {
  static constexpr float a = 0.625F, b = 1.5F;
  static constexpr float aa = a * a, bb = b * b;
  // What the weights of a point are divided by: the product of its distances from the others.
  static constexpr float at_zero = 1 / (aa * bb), at_a = 1 / (2 * aa * (aa - bb)), at_b = 1 / (2 * bb * (bb - aa));
};

HWY_INLINE Vector constant(float value) { return hn::Set(Tag(), value); }

struct SixSrcLine : SixPoints {
  static constexpr int in = 6, out = 6;
  static HWY_INLINE void apply(const Vector* x, Vector* y) {
    const Vector even_a = hn::NegMulAdd(constant(bb), x[2], x[4]);
    const Vector odd_a = hn::Mul(constant(a), hn::NegMulAdd(constant(bb), x[1], x[3]));
    const Vector even_b = hn::NegMulAdd(constant(aa), x[2], x[4]);
    const Vector odd_b = hn::Mul(constant(b), hn::NegMulAdd(constant(aa), x[1], x[3]));
    y[0] = hn::MulAdd(constant(aa * bb), x[0], hn::NegMulAdd(constant(aa + bb), x[2], x[4]));
    y[1] = hn::Add(even_a, odd_a);
    y[2] = hn::Sub(even_a, odd_a);
    y[3] = hn::Add(even_b, odd_b);
    y[4] = hn::Sub(even_b, odd_b);
    y[5] = hn::MulAdd(constant(aa * bb), x[1], hn::NegMulAdd(constant(aa + bb), x[3], x[5]));
  }
};

template <int taps>
struct SixWeightsLine : SixPoints {
  static constexpr int in = taps, out = 6;
  static HWY_INLINE void apply(const Vector* x, Vector* y) {
    Vector even_a = hn::MulAdd(constant(aa), x[2], x[0]);
    Vector even_b = hn::MulAdd(constant(bb), x[2], x[0]);
    Vector odd_a = x[1];
    Vector odd_b = x[1];
    if constexpr (taps == 5) {
      even_a = hn::MulAdd(constant(aa * aa), x[4], even_a);
      even_b = hn::MulAdd(constant(bb * bb), x[4], even_b);
      odd_a = hn::MulAdd(constant(aa), x[3], odd_a);
      odd_b = hn::MulAdd(constant(bb), x[3], odd_b);
    }
    y[0] = hn::Mul(constant(at_zero), x[0]);
    y[1] = hn::Mul(constant(at_a), hn::MulAdd(constant(a), odd_a, even_a));
    y[2] = hn::Mul(constant(at_a), hn::NegMulAdd(constant(a), odd_a, even_a));
    y[3] = hn::Mul(constant(at_b), hn::MulAdd(constant(b), odd_b, even_b));
    y[4] = hn::Mul(constant(at_b), hn::NegMulAdd(constant(b), odd_b, even_b));
    y[5] = x[taps - 1];
  }
};

template <int cells>
struct SixDstLine : SixPoints {
  static constexpr int in = 6, out = cells;
  static HWY_INLINE void apply(const Vector* x, Vector* y) {
    const Vector even_a = hn::Add(x[1], x[2]);
    const Vector even_b = hn::Add(x[3], x[4]);
    const Vector odd_a = hn::Mul(constant(a), hn::Sub(x[1], x[2]));
    const Vector odd_b = hn::Mul(constant(b), hn::Sub(x[3], x[4]));
    y[0] = hn::Add(x[0], hn::Add(even_a, even_b));
    y[1] = hn::Add(odd_a, odd_b);
    if constexpr (cells == 4) {
      y[2] = hn::MulAdd(constant(aa), even_a, hn::Mul(constant(bb), even_b));
      y[3] = hn::MulAdd(constant(aa), odd_a, hn::Mul(constant(bb), odd_b));
    }
    y[cells - 1] = hn::Add(y[cells - 1], x[5]);
  }
};

template <int cells>
struct SixDiffLine : SixPoints {
  static constexpr int in = cells, out = 6;
  static HWY_INLINE void apply(const Vector* x, Vector* y) {
    Vector even_a = x[0];
    Vector even_b = x[0];
    Vector odd_a = x[1];
    Vector odd_b = x[1];
    if constexpr (cells == 4) {
      even_a = hn::MulAdd(constant(aa), x[2], even_a);
      even_b = hn::MulAdd(constant(bb), x[2], even_b);
      odd_a = hn::MulAdd(constant(aa), x[3], odd_a);
      odd_b = hn::MulAdd(constant(bb), x[3], odd_b);
    }
    y[0] = x[0];
    y[1] = hn::MulAdd(constant(a), odd_a, even_a);
    y[2] = hn::NegMulAdd(constant(a), odd_a, even_a);
    y[3] = hn::MulAdd(constant(b), odd_b, even_b);
    y[4] = hn::NegMulAdd(constant(b), odd_b, even_b);
    y[5] = x[cells - 1];
  }
};

template <int taps>
struct SixDiffWeightsLine : SixPoints {
  static constexpr int in = 6, out = taps;
  static HWY_INLINE void apply(const Vector* x, Vector* y) {
    const Vector even_a = hn::Mul(constant(at_a), hn::Add(x[1], x[2]));
    const Vector even_b = hn::Mul(constant(at_b), hn::Add(x[3], x[4]));
    const Vector odd_a = hn::Mul(constant(a * at_a), hn::Sub(x[1], x[2]));
    const Vector odd_b = hn::Mul(constant(b * at_b), hn::Sub(x[3], x[4]));
    y[0] = hn::MulAdd(constant(at_zero), x[0], hn::Add(even_a, even_b));
    y[1] = hn::Add(odd_a, odd_b);
    y[2] = hn::MulAdd(constant(aa), even_a, hn::Mul(constant(bb), even_b));
    if constexpr (taps == 5) {
      y[3] = hn::MulAdd(constant(aa), odd_a, hn::Mul(constant(bb), odd_b));
      y[4] = hn::MulAdd(constant(aa * aa), even_a, hn::Mul(constant(bb * bb), even_b));
    }
    y[taps - 1] = hn::Add(y[taps - 1], x[5]);
  }
};

struct Identity {
  static constexpr int in = 1, out = 1;
  static HWY_INLINE void apply(const Vector* x, Vector* y) { y[0] = x[0]; }
};

/// The lines of a side.
struct One {
  static constexpr Side side = one_cell;
  using Src = Identity;
  using Weights = Identity;
  using Dst = Identity;
  using Diff = Identity;
  using DiffWeights = Identity;
};

struct Two {
  static constexpr Side side = two_of_three;
  using Src = SrcLine;
  using Weights = WeightsLine;
  using Dst = DstLine;
  using Diff = DiffLine;
  using DiffWeights = DiffWeightsLine;
};

template <int cells>
struct Six {
  static constexpr Side side{.cells = cells, .taps = 7 - cells};
  using Src = SixSrcLine;
  using Weights = SixWeightsLine<side.taps>;
  using Dst = SixDstLine<cells>;
  using Diff = SixDiffLine<cells>;
  using DiffWeights = SixDiffWeightsLine<side.taps>;
};
using Four = Six<4>;
using Five = Six<2>;

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

/// The same where all cells of a plane are more than the registers hold: line by line through memory, with
/// load(d, h, w) and store(d, h, w, value).
template <class D, class H, class W, class Load, class Store>
HWY_INLINE void map_large_box(Load load, Store store) {
  constexpr bool flat = D::in == 1;
  Vector planes[flat ? 1 : D::in][H::out * W::out];
  for (int d = 0; d < D::in; ++d) {
    Vector rows[H::in][W::out];
    for (int h = 0; h < H::in; ++h) {
      Vector x[W::in];
#pragma GCC unroll 6
      for (int w = 0; w < W::in; ++w) x[w] = load(d, h, w);
      W::apply(x, rows[h]);
    }
    for (int w = 0; w < W::out; ++w) {
      Vector x[H::in];
      Vector y[H::out];
#pragma GCC unroll 6
      for (int h = 0; h < H::in; ++h) x[h] = rows[h][w];
      H::apply(x, y);
#pragma GCC unroll 6
      for (int h = 0; h < H::out; ++h) {
        if constexpr (flat) {
          store(0, h, w, y[h]);
        } else {
          planes[d][h * W::out + w] = y[h];
        }
      }
    }
  }
  if constexpr (!flat) {
    for (int h = 0; h < H::out; ++h) {
      for (int w = 0; w < W::out; ++w) {
        Vector x[D::in];
        Vector y[D::out];
#pragma GCC unroll 4
        for (int d = 0; d < D::in; ++d) x[d] = planes[d][h * W::out + w];
        D::apply(x, y);
#pragma GCC unroll 4
        for (int d = 0; d < D::out; ++d) store(d, h, w, y[d]);
      }
    }
  }
}

template <bool apply, class Line>
using If = std::conditional_t<apply, Line, Identity>;

}  // namespace orthant::kernels::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
