#include "orthant/kernels/dense/rows.hpp"

#include "orthant/kernels/rounding.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/dense/rows.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/direct/tail_inl.hpp"

#include "orthant/kernels/activation_inl.hpp"
#include "orthant/kernels/lanes_inl.hpp"

#include <algorithm>
#include <array>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::dense::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace shared = orthant::kernels::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

// Sums that fit into the registers beside their factors. Rows of weights are streams of their own.
constexpr bool many_registers = HWY_TARGET == HWY_AVX3;
constexpr int row_block = many_registers ? 4 : 3;
constexpr int sample_block = many_registers ? 6 : 4;
constexpr std::int64_t sum_floats = 8192;  // running sums of backward_data that stay in the first-level cache
constexpr std::int64_t widest_chunk = 4096;

/// Some samples beside a few rows of weights.
struct Dots {
  std::int64_t count = 0;  ///< inputs
  const float* src = nullptr;
  std::int64_t src_step = 0;
  const float* weights = nullptr;
  std::int64_t weights_step = 0;
  std::int64_t ahead = 0;  ///< from a weight to the one to fetch meanwhile
  float* dst = nullptr;
  std::int64_t dst_step = 0;
};

/// dst[s][r] += src[s] . weights[r] for R rows and S samples.
template <int R, int S>
void dot_tile(const Dots& call) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  Vector sums[R][S];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) sums[r][s] = hn::Zero(tag);
  }
  const auto accumulate = [&](auto load, std::int64_t i) HWY_ATTR {
    Vector rows[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      rows[r] = load(call.weights + r * call.weights_step + i);
      __builtin_prefetch(call.weights + r * call.weights_step + i + call.ahead);
    }
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) {
      const Vector values = load(call.src + s * call.src_step + i);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sums[r][s] = hn::MulAdd(rows[r], values, sums[r][s]);
    }
  };
  std::int64_t i = 0;
  for (; i + lanes <= call.count; i += lanes) {
    accumulate([&](const float* from) HWY_ATTR { return hn::LoadU(tag, from); }, i);
  }
  if (lanes > 1 && i < call.count) {
    const direct::HWY_NAMESPACE::Tail tail(call.count - i);
    accumulate([&](const float* from) HWY_ATTR { return tail.load(from); }, i);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) call.dst[s * call.dst_step + r] += hn::GetLane(hn::SumOfLanes(tag, sums[r][s]));
  }
}

template <int R, int... S>
constexpr auto dot_tiles(std::integer_sequence<int, S...>) {
  return std::array<void (*)(const Dots&), sizeof...(S)>{&dot_tile<R, S + 1>...};
}

/// All samples, by nearly equal tiles; the first one fetches the next rows.
template <int R>
void dot_samples(Dots call, std::int64_t samples) {
  static constexpr auto tiles = dot_tiles<R>(std::make_integer_sequence<int, sample_block>());
  for (std::int64_t left = ceil_div(samples, sample_block); left > 0; --left) {
    const std::int64_t taken = ceil_div(samples, left);
    tiles[static_cast<std::size_t>(taken - 1)](call);
    call.src += taken * call.src_step;
    call.dst += taken * call.dst_step;
    call.ahead = 0;
    samples -= taken;
  }
}

void finish(const FinishCall& call) {
  const auto& activation = call.activation;
  const Range& outputs = call.part.columns;
  if (call.bias == nullptr && activation.kind == model::ActivationKind::identity) return;
  shared::with_activation(activation.kind, static_cast<float>(activation.slope), [&](auto function) HWY_ATTR {
    for (std::int64_t n = call.part.rows.begin; n < call.part.rows.end; ++n) {
      float* dst = call.dst + n * call.shape.dst_step + outputs.begin;
      const float* bias = call.bias == nullptr ? nullptr : call.bias + outputs.begin;
      shared::for_lanes(outputs.end - outputs.begin, [&](auto tag, std::int64_t o) HWY_ATTR {
        auto value = hn::LoadU(tag, dst + o);
        if (bias != nullptr) value = hn::Add(value, hn::LoadU(tag, bias + o));
        hn::StoreU(function.forward(tag, value), tag, dst + o);
      });
    }
  });
}

void forward(const ForwardCall& call) {
  const Shape& shape = call.shape;
  const std::int64_t chunk = dot_chunk(shape.samples);
  for (std::int64_t n = 0; n < shape.samples; ++n) {
    std::fill(call.dst + n * shape.dst_step + call.outputs.begin, call.dst + n * shape.dst_step + call.outputs.end,
              0.0F);
  }
  for (std::int64_t i = 0; i < shape.inputs; i += chunk) {
    Dots dots{.count = std::min(chunk, shape.inputs - i),
              .src = call.copy,
              .src_step = chunk + line_floats,
              .weights_step = shape.inputs,
              .dst_step = shape.dst_step};
    for (std::int64_t n = 0; n < shape.samples; ++n)
      std::copy_n(call.src + n * shape.src_step + i, dots.count, call.copy + n * dots.src_step);
    for (std::int64_t o = call.outputs.begin; o < call.outputs.end;) {
      const std::int64_t rows = o + row_block <= call.outputs.end ? row_block : 1;
      dots.weights = call.weights + o * shape.inputs + i;
      dots.ahead = shape.samples > 2 ? rows * shape.inputs : 0;  // long rows need no help
      dots.dst = call.dst + o;
      rows == 1 ? dot_samples<1>(dots, shape.samples) : dot_samples<row_block>(dots, shape.samples);
      o += rows;
    }
  }
}

/// diff_src[n] (+)= sum over R rows of diff_dst[n][r] * weights[r], over `count` inputs.
template <int R>
void scatter_rows(const Shape& shape, std::int64_t count, const float* diff_dst, const float* weights, float* diff_src,
                  bool first) {
  shared::for_lanes(count, [&](auto tag, std::int64_t i) HWY_ATTR {
    hn::Vec<decltype(tag)> rows[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) rows[r] = hn::LoadU(tag, weights + r * shape.inputs + i);
    for (std::int64_t n = 0; n < shape.samples; ++n) {
      float* to = diff_src + n * shape.src_step + i;
      auto sum = first ? hn::Zero(tag) : hn::LoadU(tag, to);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum = hn::MulAdd(hn::Set(tag, diff_dst[n * shape.dst_step + r]), rows[r], sum);
      hn::StoreU(sum, tag, to);
    }
  });
}

void backward_data(const BackwardDataCall& call) {
  constexpr std::int64_t rows = 8;
  const Shape& shape = call.shape;
  const std::int64_t chunk =
      std::clamp<std::int64_t>(sum_floats / std::max<std::int64_t>(shape.samples, 1), 256, widest_chunk);
  for (std::int64_t i = call.inputs.begin; i < call.inputs.end; i += chunk) {
    const std::int64_t count = std::min(chunk, call.inputs.end - i);
    std::int64_t o = 0;
    for (; o + rows <= shape.outputs; o += rows) {
      scatter_rows<rows>(shape, count, call.diff_dst + o, call.weights + o * shape.inputs + i, call.diff_src + i,
                         o == 0);
    }
    for (; o < shape.outputs; ++o) {
      scatter_rows<1>(shape, count, call.diff_dst + o, call.weights + o * shape.inputs + i, call.diff_src + i, o == 0);
    }
  }
}

}  // namespace orthant::kernels::dense::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::dense {

HWY_EXPORT(forward);
HWY_EXPORT(finish);
HWY_EXPORT(backward_data);

void run(const ForwardCall& call) { HWY_DYNAMIC_DISPATCH(forward)(call); }
void run(const FinishCall& call) { HWY_DYNAMIC_DISPATCH(finish)(call); }
void run(const BackwardDataCall& call) { HWY_DYNAMIC_DISPATCH(backward_data)(call); }

}  // namespace orthant::kernels::dense
#endif
