#include "orthant/kernels/winograd_transforms.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/winograd_transforms.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>

#include "orthant/kernels/direct_tail_inl.hpp"

#include <array>

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

/// Where cell i of a box of H x W cells per depth lies.
template <class Float>
struct Strided {
  Float* base;
  Steps steps;
  template <int h_cells, int w_cells>
  HWY_INLINE Float* at(int i) const {
    return base + i / (h_cells * w_cells) * steps.d + i / w_cells % h_cells * steps.h + i % w_cells * steps.w;
  }
};

template <class Float>
struct Listed {
  Float* const* cells;
  std::int64_t offset;
  template <int h_cells, int w_cells>
  HWY_INLINE Float* at(int i) const {
    return cells[i] + offset;
  }
};

/// Bias and slope of what goes to dst.
template <bool to_dst>
struct Finish {
  const MapCall& call;
  HWY_INLINE Vector operator()(Vector value, Vector bias) const {
    if constexpr (!to_dst) return value;
    value = hn::Add(value, bias);
    const Vector zero = hn::Zero(Tag());
    return hn::MulAdd(hn::Set(Tag(), call.slope), hn::Min(value, zero), hn::Max(value, zero));
  }
};

/// All channels of one box; in(c) and out(c) find its cells from channel c on.
template <class D, class H, class W, bool to_dst, class In, class Out>
HWY_INLINE void map_channels(const MapCall& call, In in, Out out) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const Finish<to_dst> finish{call};
  std::int64_t c = 0;
  for (; c + lanes <= call.channels; c += lanes) {
    const Vector bias = to_dst && call.bias != nullptr ? hn::LoadU(tag, call.bias + c) : hn::Zero(tag);
    const auto from = in(c);
    const auto to = out(c);
    map_box<D, H, W>([&](int i) HWY_ATTR { return hn::LoadU(tag, from.template at<H::in, W::in>(i)); },
                     [&](int j, Vector value)
                         HWY_ATTR { hn::StoreU(finish(value, bias), tag, to.template at<H::out, W::out>(j)); });
  }
  if (hn::MaxLanes(tag) == 1 || c == call.channels) return;
  const direct::HWY_NAMESPACE::Tail tail(call.channels - c);
  const Vector bias = to_dst && call.bias != nullptr ? tail.load(call.bias + c) : hn::Zero(tag);
  const auto from = in(c);
  const auto to = out(c);
  map_box<D, H, W>([&](int i) HWY_ATTR { return tail.load(from.template at<H::in, W::in>(i)); },
                   [&](int j, Vector value)
                       HWY_ATTR { tail.store(finish(value, bias), to.template at<H::out, W::out>(j)); });
}

enum class Clipped { none, in, out };

template <class D, class H, class W, Clipped clipped = Clipped::none>
void map(const MapCall& call) {
  constexpr bool to_dst = clipped == Clipped::out;
  if constexpr (clipped == Clipped::in) {
    if (call.in == nullptr) {
      map_channels<D, H, W, to_dst>(
          call,
          [&](std::int64_t c) {
            return Listed<const float>{call.in_cells, c};
          },
          [&](std::int64_t c) {
            return Strided<float>{call.out + c, call.out_steps};
          });
      return;
    }
  }
  if constexpr (clipped == Clipped::out) {
    if (call.out == nullptr) {
      map_channels<D, H, W, to_dst>(
          call,
          [&](std::int64_t c) {
            return Strided<const float>{call.in + c, call.in_steps};
          },
          [&](std::int64_t c) {
            return Listed<float>{call.out_cells, c};
          });
      return;
    }
  }
  const float* in = call.in;
  float* out = call.out;
  for (std::int64_t box = 0; box < call.boxes; ++box, in += call.in_next, out += call.out_next) {
    map_channels<D, H, W, to_dst>(
        call,
        [&](std::int64_t c) {
          return Strided<const float>{in + c, call.in_steps};
        },
        [&](std::int64_t c) {
          return Strided<float>{out + c, call.out_steps};
        });
  }
}

template <bool apply, class Line>
using If = std::conditional_t<apply, Line, Identity>;

template <bool D, bool H, bool W>
Transforms make() {
  return {.src_to_points = &map<If<D, SrcLine>, If<H, SrcLine>, If<W, SrcLine>, Clipped::in>,
          .weights_to_points = &map<If<D, WeightsLine>, If<H, WeightsLine>, If<W, WeightsLine>>,
          .points_to_dst = &map<If<D, DstLine>, If<H, DstLine>, If<W, DstLine>, Clipped::out>,
          .diff_to_points = &map<If<D, DiffLine>, If<H, DiffLine>, If<W, DiffLine>, Clipped::in>,
          .points_to_weights = &map<If<D, DiffWeightsLine>, If<H, DiffWeightsLine>, If<W, DiffWeightsLine>>};
}

using Table = std::array<Transforms, 8>;

Table make_table() {
  return {Transforms{},
          make<false, false, true>(),
          make<false, true, false>(),
          make<false, true, true>(),
          make<true, false, false>(),
          make<true, false, true>(),
          make<true, true, false>(),
          make<true, true, true>()};
}

}  // namespace orthant::kernels::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::winograd {

HWY_EXPORT(make_table);

Transforms transforms(bool three_d, bool three_h, bool three_w) {
  const std::array<Transforms, 8> table = HWY_DYNAMIC_DISPATCH(make_table)();
  return table[(three_d ? 4U : 0U) + (three_h ? 2U : 0U) + (three_w ? 1U : 0U)];
}

}  // namespace orthant::kernels::winograd
#endif
