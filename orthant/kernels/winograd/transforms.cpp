#include "orthant/kernels/winograd/transforms.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/winograd/transforms.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>

#include "orthant/kernels/direct/tail_inl.hpp"
#include "orthant/kernels/winograd/lines_inl.hpp"

#include <algorithm>
#include <array>

#ifndef ORTHANT_KERNELS_WINOGRAD_TRANSFORMS_TABLE
#define ORTHANT_KERNELS_WINOGRAD_TRANSFORMS_TABLE
namespace orthant::kernels::winograd {
namespace {

struct Entry {
  Sides sides;
  Transforms maps;
};
using Table = std::array<Entry, 10>;

}  // namespace
}  // namespace orthant::kernels::winograd
#endif

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::winograd::HWY_NAMESPACE {

/// Where a cell of a box of H x W cells per depth lies.
template <class Float>
struct Strided {
  Float* base;
  Strides steps;
  template <int h_cells, int w_cells>
  HWY_INLINE Float* at(int d, int h, int w) const {
    return base + d * steps.d + h * steps.h + w * steps.w;
  }
};

template <class Float>
struct Listed {
  Float* const* cells;
  std::int64_t offset;
  template <int h_cells, int w_cells>
  HWY_INLINE Float* at(int d, int h, int w) const {
    return cells[(d * h_cells + h) * w_cells + w] + offset;
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

/// Calls map_box or map_large_box with load(d, h, w) and store(d, h, w, value).
template <class D, class H, class W, class Load, class Store>
HWY_INLINE void map_cells(Load load, Store store) {
  if constexpr (H::in <= 4 && H::out <= 4) {
    map_box<D, H, W>([&](int i) HWY_ATTR { return load(i / (H::in * W::in), i / W::in % H::in, i % W::in); },
                     [&](int j, Vector value)
                         HWY_ATTR { store(j / (H::out * W::out), j / W::out % H::out, j % W::out, value); });
  } else {
    map_large_box<D, H, W>(load, store);
  }
}

/// All channels of one box; in(c) and out(c) find its cells from channel c on.
template <class D, class H, class W, bool to_dst, bool stream, class In, class Out>
HWY_INLINE void map_channels(const MapCall& call, In in, Out out) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  const Finish<to_dst> finish{call};
  std::int64_t c = 0;
  for (; c + lanes <= call.channels; c += lanes) {
    const Vector bias = to_dst && call.bias != nullptr ? hn::LoadU(tag, call.bias + c) : hn::Zero(tag);
    const auto from = in(c);
    const auto to = out(c);
    map_cells<D, H, W>(
        [&](int d, int h, int w) HWY_ATTR { return hn::LoadU(tag, from.template at<H::in, W::in>(d, h, w)); },
        [&](int d, int h, int w, Vector value) HWY_ATTR {
          float* const cell = to.template at<H::out, W::out>(d, h, w);
          stream ? hn::Stream(finish(value, bias), tag, cell) : hn::StoreU(finish(value, bias), tag, cell);
        });
  }
  if (hn::MaxLanes(tag) == 1 || c == call.channels) return;
  const direct::HWY_NAMESPACE::Tail tail(call.channels - c);
  const Vector bias = to_dst && call.bias != nullptr ? tail.load(call.bias + c) : hn::Zero(tag);
  const auto from = in(c);
  const auto to = out(c);
  map_cells<D, H, W>([&](int d, int h, int w) HWY_ATTR { return tail.load(from.template at<H::in, W::in>(d, h, w)); },
                     [&](int d, int h, int w, Vector value)
                         HWY_ATTR { tail.store(finish(value, bias), to.template at<H::out, W::out>(d, h, w)); });
}

template <class D, class H, class W, bool to_dst, bool stream>
HWY_INLINE void map_boxes(const MapCall& call) {
  const float* in = call.in;
  float* out = call.out;
  for (std::int64_t box = 0; box < call.boxes; ++box, in += call.in_next, out += call.out_next) {
    map_channels<D, H, W, to_dst, stream>(
        call,
        [&](std::int64_t c) {
          return Strided<const float>{in + c, call.in_strides};
        },
        [&](std::int64_t c) {
          return Strided<float>{out + c, call.out_strides};
        });
  }
}

enum class Clipped { none, in, out };

template <class D, class H, class W, Clipped clipped = Clipped::none>
void map(const MapCall& call) {
  constexpr bool to_dst = clipped == Clipped::out;
  if constexpr (clipped == Clipped::in) {
    if (call.in == nullptr) {
      map_channels<D, H, W, to_dst, false>(
          call,
          [&](std::int64_t c) {
            return Listed<const float>{call.in_cells, c};
          },
          [&](std::int64_t c) {
            return Strided<float>{call.out + c, call.out_strides};
          });
      return;
    }
  }
  if constexpr (clipped == Clipped::out) {
    if (call.out == nullptr) {
      map_channels<D, H, W, to_dst, false>(
          call,
          [&](std::int64_t c) {
            return Strided<const float>{call.in + c, call.in_strides};
          },
          [&](std::int64_t c) {
            return Listed<float>{call.out_cells, c};
          });
      return;
    }
  }
  if constexpr (clipped == Clipped::none) {
    if (call.stream) return map_boxes<D, H, W, to_dst, true>(call);
  }
  map_boxes<D, H, W, to_dst, false>(call);
}

template <class D, class H, class W>
Entry entry() {
  return {
      .sides = {D::side, H::side, W::side},
      .maps = {.src_to_points = &map<typename D::Src, typename H::Src, typename W::Src, Clipped::in>,
               .weights_to_points = &map<typename D::Weights, typename H::Weights, typename W::Weights>,
               .points_to_dst = &map<typename D::Dst, typename H::Dst, typename W::Dst, Clipped::out>,
               .diff_to_points = &map<typename D::Diff, typename H::Diff, typename W::Diff, Clipped::in>,
               .points_to_weights = &map<typename D::DiffWeights, typename H::DiffWeights, typename W::DiffWeights>}};
}

Table make_table() {
  return {entry<One, One, Two>(),   entry<One, Two, One>(),  entry<One, Two, Two>(), entry<Two, One, One>(),
          entry<Two, One, Two>(),   entry<Two, Two, One>(),  entry<Two, Two, Two>(), entry<One, Four, Four>(),
          entry<Two, Four, Four>(), entry<One, Five, Five>()};
}

}  // namespace orthant::kernels::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::winograd {

HWY_EXPORT(make_table);

const Transforms* find_transforms(const Sides& sides) {
  static const Table table = HWY_DYNAMIC_DISPATCH(make_table)();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Entry& one) { return one.sides == sides; });
  return found == table.end() ? nullptr : &found->maps;
}

}  // namespace orthant::kernels::winograd
#endif
