#include "orthant/kernels/elementwise/softmax.hpp"

#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/lines.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/elementwise/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::elementwise::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

/// exp(x) for x <= 0, NaN for NaN.
template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, x), x);
}

/// dst = exp(src - shift).
HWY_INLINE void exp_row(const float* src, float* dst, float shift, std::int64_t count) {
  for_lanes(count, [&](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(exp_of(d, hn::Sub(hn::LoadU(d, src + i), hn::Set(d, shift))), d, dst + i);
  });
}

/// Where an item is NaN any result will do: that item makes the whole row NaN.
HWY_INLINE float largest_of(const float* row, std::int64_t count) {
  float largest = row[0];
  for (std::int64_t i = 1; i < count; ++i) largest = row[i] > largest ? row[i] : largest;
  return largest;
}

/// Sixteen sums side by side, so that the compiler can use vectors.
HWY_INLINE double sum_of(const float* row, std::int64_t count) {
  constexpr std::int64_t lanes = 16;
  float partial[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) partial[lane] += row[i + lane];
  }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(row[i]);
  for (const float one : partial) sum += static_cast<double>(one);
  return sum;
}

HWY_INLINE void scale_row(float* row, float factor, std::int64_t count) {
  for_lanes(count, [&](auto d, std::int64_t i)
                       HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, row + i), hn::Set(d, factor)), d, row + i); });
}

void softmax_wide(const SoftmaxForward& args, std::int64_t pixels, std::int64_t channels) {
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* src = args.src + p * args.src_stride;
    float* dst = args.dst + p * args.dst_stride;
    exp_row(src, dst, largest_of(src, channels), channels);
    scale_row(dst, static_cast<float>(1 / sum_of(dst, channels)), channels);
  }
}

/// With few channels vectors would be mostly empty, so a tile of pixels is collected and all its exponentials are
/// computed at once.
void softmax_narrow(const SoftmaxForward& args, std::int64_t pixels, std::int64_t channels) {
  constexpr std::int64_t tile_items = 1024;
  alignas(64) std::array<float, tile_items> tile{};
  const std::int64_t rows = tile_items / channels;
  for (std::int64_t first = 0; first < pixels; first += rows) {
    const std::int64_t count = std::min(rows, pixels - first);
    for (std::int64_t p = 0; p < count; ++p) {
      const float* src = args.src + (first + p) * args.src_stride;
      const float largest = largest_of(src, channels);
      for (std::int64_t c = 0; c < channels; ++c) tile[static_cast<std::size_t>(p * channels + c)] = src[c] - largest;
    }
    exp_row(tile.data(), tile.data(), 0.0F, count * channels);
    for (std::int64_t p = 0; p < count; ++p) {
      const float* from = tile.data() + p * channels;
      float* dst = args.dst + (first + p) * args.dst_stride;
      float sum = 0;
      for (std::int64_t c = 0; c < channels; ++c) sum += from[c];
      for (std::int64_t c = 0; c < channels; ++c) dst[c] = from[c] / sum;
    }
  }
}

void softmax_line(const SoftmaxForward& args, std::int64_t pixels, std::int64_t channels) {
  constexpr std::int64_t narrow = 16;
  channels <= narrow ? softmax_narrow(args, pixels, channels) : softmax_wide(args, pixels, channels);
}

void softmax_gradient_line(const SoftmaxBackward& args, std::int64_t pixels, std::int64_t channels) {
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* diff_dst = args.diff_dst + p * args.dst_stride;
    const float* y = args.y + p * args.y_stride;
    float* diff_src = args.diff_src + p * args.src_stride;
    double sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += static_cast<double>(diff_dst[c]) * static_cast<double>(y[c]);
    for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      const auto difference = hn::Sub(hn::LoadU(d, diff_dst + i), hn::Set(d, static_cast<float>(sum)));
      hn::StoreU(hn::Mul(hn::LoadU(d, y + i), difference), d, diff_src + i);
    });
  }
}

}  // namespace
}  // namespace orthant::kernels::elementwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::elementwise {
namespace {

HWY_EXPORT(softmax_line);
HWY_EXPORT(softmax_gradient_line);

class SoftmaxPrimitive final : public Primitive {
 public:
  SoftmaxPrimitive(const model::SoftmaxTask& task, int threads)
      : forward_(task.pass == model::Pass::forward),
        lines_({&task.src, &task.dst, tensor::is_given(task.diff_dst) ? &task.diff_dst : &task.dst}),
        team_(team_for(8 * lines_.items(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:softmax:" + simd_target(); }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    run_team(team_, [&](int thread, int team) {
      const std::int64_t begin = share(lines_.pixels(), thread, team), end = share(lines_.pixels(), thread + 1, team);
      lines_.visit(begin, end,
                   [&](const Line& line) { forward_ ? forward(line, arguments) : backward(line, arguments); });
    });
  }

 private:
  static void forward(const Line& line, std::span<void* const> arguments) {
    const SoftmaxForward args{.src = static_cast<const float*>(arguments[at::softmax_forward::src]) + line.offsets[0],
                              .dst = static_cast<float*>(arguments[at::softmax_forward::dst]) + line.offsets[1],
                              .src_stride = line.strides[0],
                              .dst_stride = line.strides[1]};
    softmax_rows(args, line.pixels, line.channels);
  }

  static void backward(const Line& line, std::span<void* const> arguments) {
    const SoftmaxBackward args{
        .diff_dst = static_cast<const float*>(arguments[at::softmax_backward::diff_dst]) + line.offsets[2],
        .y = static_cast<const float*>(arguments[at::softmax_backward::y]) + line.offsets[1],
        .diff_src = static_cast<float*>(arguments[at::softmax_backward::diff_src]) + line.offsets[0],
        .dst_stride = line.strides[2],
        .y_stride = line.strides[1],
        .src_stride = line.strides[0]};
    softmax_gradient_rows(args, line.pixels, line.channels);
  }

  bool forward_;
  Lines lines_;
  int team_;
};

}  // namespace

void softmax_rows(const SoftmaxForward& args, std::int64_t pixels, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(softmax_line)(args, pixels, channels);
}

void softmax_gradient_rows(const SoftmaxBackward& args, std::int64_t pixels, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(softmax_gradient_line)(args, pixels, channels);
}

std::unique_ptr<Primitive> make_softmax(const model::SoftmaxTask& task, int threads) {
  return std::make_unique<SoftmaxPrimitive>(task, threads);
}

}  // namespace orthant::kernels::elementwise
#endif
