#include "orthant/kernels/elementwise/activation.hpp"
#include "orthant/kernels/norm/norm.hpp"
#include "orthant/kernels/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/norm/backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/norm/gradient_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::norm::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

void norm_gradient_line(const NormGradient& args, const NormGradientApply& line, std::int64_t pixels,
                        std::int64_t channels) {
  with_activation(args.kind, args.slope, [&]<class A>(A activation) HWY_ATTR {
    const Gradient<A> gradient{activation, args};
    const NormGradientApply out = line;
    const float* scale = args.scale;
    for (std::int64_t p = 0; p < pixels; ++p) {
      float* diff_x = out.diff_x + p * out.diff_x_stride;
      for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto centred = gradient.centred(d, p, i);
        const auto dz = gradient.dz(d, centred, p, i);
        const auto through = hn::MulAdd(centred, hn::LoadU(d, out.factor + i), hn::LoadU(d, out.offset + i));
        hn::StoreU(hn::MulSub(hn::LoadU(d, scale + i), dz, through), d, diff_x + i);
      });
    }
  });
}

}  // namespace
}  // namespace orthant::kernels::norm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::norm {
namespace {

HWY_EXPORT(norm_gradient_line);

class NormBackward final : public Primitive {
 public:
  NormBackward(const model::NormTask& task, int threads)
      : task_(task),
        places_(task.groups, task.x),
        samples_(places_.per_sample(), {&given_or(task.diff_y, y_of(task)), &given_or(task.diff_y2, y_of(task)),
                                        &task.x, &y_of(task), &given_or(task.diff_x, task.x)}),
        lines_(samples_.lines()),
        team_(team_for(lines_.items(), threads)),
        inverse_count_(1 / static_cast<double>(task.statistics_count > 0 ? task.statistics_count : lines_.pixels())) {
    elementwise::check_invertible(task.activation);
  }

  [[nodiscard]] std::string name() const override { return "orthant:norm:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return 5 * width() * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    if (lines_.pixels() == 0) return;
    for (std::int64_t sample = 0; sample < samples_.parts(); ++sample)
      differentiate(arguments, sample, static_cast<float*>(scratch));
  }

 private:
  /// If y was not kept, the layout of x stands in for its own.
  static const tensor::Layout& y_of(const model::NormTask& task) { return given_or(task.y, task.x); }

  [[nodiscard]] std::int64_t width() const { return lines_.channels() * lines_.width_factor(); }

  void differentiate(std::span<void* const> arguments, std::int64_t sample, float* memory) const {
    const NormGradientRows rows = gradient_rows(arguments, lines_, places_, sample, memory);
    float* offset = memory + 3 * width();
    float* factor = memory + 4 * width();
    flow_through_statistics(arguments, sample, rows, offset, factor);
    constexpr std::size_t diff_x = 4;
    run_team(team_, [&](int thread, int team) {
      samples_.visit_part(sample, thread, team, rows_per_call, [&](const Line& line) {
        const NormGradientApply out{
            .offset = offset,
            .factor = factor,
            .diff_x = static_cast<float*>(arguments[at::norm_backward::diff_x]) + line.offsets[diff_x],
            .diff_x_stride = line.strides[diff_x]};
        HWY_DYNAMIC_DISPATCH(norm_gradient_line)
        (gradient_of(task_.activation, arguments, rows, line), out, line.pixels, line.channels);
      });
    });
  }

  /// The sums of a group are of gamma * dz, those of a channel of dz: there gamma is in the scale.
  void flow_through_statistics(std::span<void* const> arguments, std::int64_t sample, const NormGradientRows& rows,
                               float* offset, float* factor) const {
    const std::int64_t channels = lines_.channels();
    const auto* saved = static_cast<const float*>(arguments[at::norm_backward::saved]);
    const auto* sums = static_cast<const double*>(arguments[at::norm_backward::sums]);
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t first = places_.first(sample, c), second = places_.second(sample, c);
      const auto inverse_std = static_cast<double>(saved[second]);
      const double scale = places_.per_sample() ? inverse_std : static_cast<double>(rows.scale[c]);
      offset[c] = task_.training ? static_cast<float>(scale * sums[first] * inverse_count_) : 0;
      factor[c] = task_.training ? static_cast<float>(scale * inverse_std * sums[second] * inverse_count_) : 0;
    }
    repeat_channels(offset, channels, lines_.width_factor(), offset);
    repeat_channels(factor, channels, lines_.width_factor(), factor);
  }

  model::NormTask task_;
  Places places_;
  SampleLines samples_;
  const Lines& lines_;
  int team_;
  double inverse_count_;
};

}  // namespace

std::unique_ptr<Primitive> make_norm_backward(const model::NormTask& task, int threads) {
  return std::make_unique<NormBackward>(task, threads);
}

}  // namespace orthant::kernels::norm
#endif
