#include "orthant/kernels/elementwise/activation.hpp"

#include "orthant/base/error.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/elementwise/activation.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/activation_inl.hpp"
#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::elementwise::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

template <class A>
void activate(A activation, const ActivationForward& args, std::int64_t pixels, std::int64_t channels) {
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* src = args.src + p * args.src_stride;
    float* dst = args.dst + p * args.dst_stride;
    if (args.bias) {
      for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto z = hn::Add(hn::LoadU(d, src + i), hn::LoadU(d, args.bias + i));
        hn::StoreU(activation.forward(d, z), d, dst + i);
      });
    } else {
      for_lanes(channels, [&](auto d, std::int64_t i)
                              HWY_ATTR { hn::StoreU(activation.forward(d, hn::LoadU(d, src + i)), d, dst + i); });
    }
  }
}

template <class A>
void differentiate(A activation, const ActivationBackward& args, std::int64_t pixels, std::int64_t channels) {
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* diff_dst = args.diff_dst + p * args.dst_stride;
    const float* diff_dst2 = args.diff_dst2 ? args.diff_dst2 + p * args.second_stride : nullptr;
    const float* y = args.y ? args.y + p * args.y_stride : diff_dst;
    float* diff_src = args.diff_src + p * args.src_stride;
    for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      auto g = hn::LoadU(d, diff_dst + i);
      if (diff_dst2) g = hn::Add(g, hn::LoadU(d, diff_dst2 + i));
      hn::StoreU(activation.backward(d, hn::LoadU(d, y + i), g), d, diff_src + i);
    });
  }
}

void activate_line(const ActivationForward& args, std::int64_t pixels, std::int64_t channels) {
  with_activation(args.kind, args.slope,
                  [&](auto activation) HWY_ATTR { activate(activation, args, pixels, channels); });
}

void differentiate_line(const ActivationBackward& args, std::int64_t pixels, std::int64_t channels) {
  with_activation(args.kind, args.slope,
                  [&](auto activation) HWY_ATTR { differentiate(activation, args, pixels, channels); });
}

}  // namespace
}  // namespace orthant::kernels::elementwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::elementwise {
namespace {

HWY_EXPORT(activate_line);
HWY_EXPORT(differentiate_line);

class ForwardActivation final : public Primitive {
 public:
  ForwardActivation(const model::ActivationTask& task, int threads)
      : activation_(task.activation), lines_({&task.src, &task.dst}), team_(team_for(lines_.items(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:activation:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return lines_.channels() * lines_.width_factor() * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const auto* src = static_cast<const float*>(arguments[at::activation_forward::src]);
    auto* dst = static_cast<float*>(arguments[at::activation_forward::dst]);
    const float* bias =
        repeated(static_cast<const float*>(arguments[at::activation_forward::bias]), static_cast<float*>(scratch));
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        const ActivationForward args{.kind = activation_.kind,
                                     .slope = static_cast<float>(activation_.slope),
                                     .src = src + line.offsets[0],
                                     .bias = bias,
                                     .dst = dst + line.offsets[1],
                                     .src_stride = line.strides[0],
                                     .dst_stride = line.strides[1]};
        HWY_DYNAMIC_DISPATCH(activate_line)(args, line.pixels, line.channels);
      });
    });
  }

 private:
  /// The bias once per pixel of a widened row.
  const float* repeated(const float* bias, float* row) const {
    if (!bias) return nullptr;
    for (std::int64_t i = 0; i < lines_.width_factor(); ++i)
      std::copy_n(bias, lines_.channels(), row + i * lines_.channels());
    return row;
  }

  model::Activation activation_;
  Lines lines_;
  int team_;
};

class BackwardActivation final : public Primitive {
 public:
  BackwardActivation(const model::ActivationTask& task, int threads)
      : activation_(task.activation), lines_(lines_of(task)), team_(team_for(lines_.items(), threads)) {
    check_invertible(activation_);
  }

  [[nodiscard]] std::string name() const override { return "orthant:activation:" + simd_target(); }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    const auto* diff_dst = static_cast<const float*>(arguments[at::activation_backward::diff_dst]);
    const auto* diff_dst2 = static_cast<const float*>(arguments[at::activation_backward::diff_dst2]);
    const auto* y = static_cast<const float*>(arguments[at::activation_backward::y]);
    auto* diff_src = static_cast<float*>(arguments[at::activation_backward::diff_src]);
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        const ActivationBackward args{
            .kind = activation_.kind,
            .slope = static_cast<float>(activation_.slope),
            .diff_dst = diff_dst + line.offsets[0],
            .diff_dst2 = diff_dst2 ? diff_dst2 + line.offsets[2] : nullptr,
            .y = y ? y + line.offsets[3] : nullptr,
            .diff_src = diff_src + line.offsets[1],
            .dst_stride = line.strides[0],
            .second_stride = line.strides[2],
            .y_stride = line.strides[3],
            .src_stride = line.strides[1],
        };
        HWY_DYNAMIC_DISPATCH(differentiate_line)(args, line.pixels, line.channels);
      });
    });
  }

 private:
  /// A layout that is not given is that of dst: `second` if there is no second gradient, `y` if it is laid out as dst.
  static Lines lines_of(const model::ActivationTask& task) {
    const auto given = [&](const tensor::Layout& layout) { return tensor::is_given(layout) ? &layout : &task.dst; };
    return Lines({&task.dst, &task.src, given(task.second), given(task.y)});
  }

  model::Activation activation_;
  Lines lines_;
  int team_;
};

}  // namespace

void check_invertible(const model::Activation& activation) {
  if (activation.kind == model::ActivationKind::leaky_relu && activation.slope < 0) {
    base::fail(base::Exit::bad_data, "leaky_relu has slope {}; it must not be negative in training", activation.slope);
  }
}

std::unique_ptr<Primitive> make_activation(const model::ActivationTask& task, int threads) {
  if (task.pass == model::Pass::forward) return std::make_unique<ForwardActivation>(task, threads);
  return std::make_unique<BackwardActivation>(task, threads);
}

}  // namespace orthant::kernels::elementwise
#endif
