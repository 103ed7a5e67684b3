#include "orthant/kernels/dense/rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/dense/rows.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/direct/tail_inl.hpp"

#include "orthant/kernels/activation_inl.hpp"
#include "orthant/kernels/lanes_inl.hpp"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::dense::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace shared = orthant::kernels::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

constexpr std::int64_t row_block = 4;       // weight rows read side by side: each is a stream of its own
constexpr std::int64_t sample_block = 4;    // samples that share a weight vector in a register
constexpr std::int64_t input_chunk = 4096;  // inputs whose weight rows stay in the cache from sample to sample
constexpr std::int64_t sum_floats = 8192;   // running sums of backward_data that stay in the first-level cache

/// dst[s][r] += src[s] . weights[r] over `count` inputs, for R rows and S samples.
template <int R, int S>
void dot_tile(const Shape& shape, std::int64_t count, const float* src, const float* weights, float* dst) {
  const Tag tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  Vector sums[R][S];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int s = 0; s < S; ++s) sums[r][s] = hn::Zero(tag);
  }
  const auto accumulate = [&](auto load, std::int64_t i) HWY_ATTR {
    Vector rows[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) rows[r] = load(weights + r * shape.inputs + i);
#pragma GCC unroll 4
    for (int s = 0; s < S; ++s) {
      const Vector values = load(src + s * shape.src_step + i);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sums[r][s] = hn::MulAdd(rows[r], values, sums[r][s]);
    }
  };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    accumulate([&](const float* from) HWY_ATTR { return hn::LoadU(tag, from); }, i);
  }
  if (lanes > 1 && i < count) {
    const direct::HWY_NAMESPACE::Tail tail(count - i);
    accumulate([&](const float* from) HWY_ATTR { return tail.load(from); }, i);
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int s = 0; s < S; ++s) dst[s * shape.dst_step + r] += hn::GetLane(hn::SumOfLanes(tag, sums[r][s]));
  }
}

template <int R>
void dot_samples(const Shape& shape, std::int64_t count, const float* src, const float* weights, float* dst) {
  std::int64_t n = 0;
  for (; n + sample_block <= shape.samples; n += sample_block) {
    dot_tile<R, sample_block>(shape, count, src + n * shape.src_step, weights, dst + n * shape.dst_step);
  }
  const float* left_src = src + n * shape.src_step;
  float* left_dst = dst + n * shape.dst_step;
  switch (shape.samples - n) {
    case 3: return dot_tile<R, 3>(shape, count, left_src, weights, left_dst);
    case 2: return dot_tile<R, 2>(shape, count, left_src, weights, left_dst);
    case 1: return dot_tile<R, 1>(shape, count, left_src, weights, left_dst);
    default: return;
  }
}

/// Bias and activation over what the dot products left in dst.
void finish(const ForwardCall& call) {
  const auto& activation = call.activation;
  shared::with_activation(activation.kind, static_cast<float>(activation.slope), [&](auto function) HWY_ATTR {
    for (std::int64_t n = 0; n < call.shape.samples; ++n) {
      float* dst = call.dst + n * call.shape.dst_step + call.outputs.begin;
      const float* bias = call.bias == nullptr ? nullptr : call.bias + call.outputs.begin;
      shared::for_lanes(call.outputs.end - call.outputs.begin, [&](auto tag, std::int64_t o) HWY_ATTR {
        auto value = hn::LoadU(tag, dst + o);
        if (bias != nullptr) value = hn::Add(value, hn::LoadU(tag, bias + o));
        hn::StoreU(function.forward(tag, value), tag, dst + o);
      });
    }
  });
}

void forward(const ForwardCall& call) {
  const Shape& shape = call.shape;
  for (std::int64_t n = 0; n < shape.samples; ++n) {
    std::fill(call.dst + n * shape.dst_step + call.outputs.begin, call.dst + n * shape.dst_step + call.outputs.end,
              0.0F);
  }
  for (std::int64_t i = 0; i < shape.inputs; i += input_chunk) {
    const std::int64_t count = std::min(input_chunk, shape.inputs - i);
    std::int64_t o = call.outputs.begin;
    for (; o + row_block <= call.outputs.end; o += row_block) {
      dot_samples<row_block>(shape, count, call.src + i, call.weights + o * shape.inputs + i, call.dst + o);
    }
    for (; o < call.outputs.end; ++o) {
      dot_samples<1>(shape, count, call.src + i, call.weights + o * shape.inputs + i, call.dst + o);
    }
  }
  finish(call);
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
      std::clamp<std::int64_t>(sum_floats / std::max<std::int64_t>(shape.samples, 1), 256, input_chunk);
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

/// diff_weights[r] = sum over samples of diff_dst[n][r] * src[n], over `count` inputs, for R rows.
template <int R>
void outer_rows(const BackwardWeightsCall& call, std::int64_t count, const float* src, const float* diff_dst,
                float* diff_weights) {
  const Shape& shape = call.shape;
  shared::for_lanes(count, [&](auto tag, std::int64_t i) HWY_ATTR {
    hn::Vec<decltype(tag)> sums[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sums[r] = call.accumulate ? hn::LoadU(tag, diff_weights + r * shape.inputs + i) : hn::Zero(tag);
    }
    for (std::int64_t n = 0; n < shape.samples; ++n) {
      const auto values = hn::LoadU(tag, src + n * shape.src_step + i);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        sums[r] = hn::MulAdd(hn::Set(tag, diff_dst[n * shape.dst_step + r]), values, sums[r]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) hn::StoreU(sums[r], tag, diff_weights + r * shape.inputs + i);
  });
}

void backward_weights(const BackwardWeightsCall& call) {
  constexpr std::int64_t rows = 8;
  const Shape& shape = call.shape;
  for (std::int64_t i = 0; i < shape.inputs; i += input_chunk) {
    const std::int64_t count = std::min(input_chunk, shape.inputs - i);
    std::int64_t o = call.outputs.begin;
    for (; o + rows <= call.outputs.end; o += rows) {
      outer_rows<rows>(call, count, call.src + i, call.diff_dst + o, call.diff_weights + o * shape.inputs + i);
    }
    for (; o < call.outputs.end; ++o) {
      outer_rows<1>(call, count, call.src + i, call.diff_dst + o, call.diff_weights + o * shape.inputs + i);
    }
  }
  if (call.diff_bias == nullptr) return;
  for (std::int64_t o = call.outputs.begin; o < call.outputs.end; ++o) {
    float sum = call.accumulate ? call.diff_bias[o] : 0;
    for (std::int64_t n = 0; n < shape.samples; ++n) sum += call.diff_dst[n * shape.dst_step + o];
    call.diff_bias[o] = sum;
  }
}

}  // namespace orthant::kernels::dense::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::dense {

HWY_EXPORT(forward);
HWY_EXPORT(backward_data);
HWY_EXPORT(backward_weights);

void run(const ForwardCall& call) { HWY_DYNAMIC_DISPATCH(forward)(call); }
void run(const BackwardDataCall& call) { HWY_DYNAMIC_DISPATCH(backward_data)(call); }
void run(const BackwardWeightsCall& call) { HWY_DYNAMIC_DISPATCH(backward_weights)(call); }

}  // namespace orthant::kernels::dense
#endif
