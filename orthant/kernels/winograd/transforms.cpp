#include "orthant/kernels/winograd/transforms.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/winograd/transforms.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>

#include "orthant/kernels/direct/tail_inl.hpp"
#include "orthant/kernels/winograd/lines_inl.hpp"

#include <array>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::winograd::HWY_NAMESPACE {

/// Where cell i of a box of H x W cells per depth lies.
template <class Float>
struct Strided {
  Float* base;
  Strides steps;
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
    map_box<D, H, W>([&](int i) HWY_ATTR { return hn::LoadU(tag, from.template at<H::in, W::in>(i)); },
                     [&](int j, Vector value) HWY_ATTR {
                       float* const cell = to.template at<H::out, W::out>(j);
                       stream ? hn::Stream(finish(value, bias), tag, cell) : hn::StoreU(finish(value, bias), tag, cell);
                     });
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
