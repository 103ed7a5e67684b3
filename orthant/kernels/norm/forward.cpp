#include "orthant/kernels/norm/norm.hpp"
#include "orthant/kernels/simd.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/norm/forward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/activation_inl.hpp"
#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::norm::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

template <class A>
HWY_INLINE void normalise(A activation, const NormApply& line, std::int64_t pixels, std::int64_t channels) {
  const NormApply args = line;
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* x = args.x + p * args.x_stride;
    const float* residual = args.residual ? args.residual + p * args.residual_stride : nullptr;
    float* y = args.y + p * args.y_stride;
    for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      prefetch_ahead(x + i);
      prefetch_ahead(y + i);
      const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, args.mean + i));
      auto z = hn::MulAdd(centred, hn::LoadU(d, args.scale + i), hn::LoadU(d, args.beta + i));
      if (residual) {
        prefetch_ahead(residual + i);
        z = hn::Add(z, hn::LoadU(d, residual + i));
      }
      hn::StoreU(activation.forward(d, z), d, y + i);
    });
  }
}

void normalise_line(const NormApply& args, std::int64_t pixels, std::int64_t channels) {
  with_activation(args.kind, args.slope,
                  [&](auto activation) HWY_ATTR { normalise(activation, args, pixels, channels); });
}

}  // namespace
}  // namespace orthant::kernels::norm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::norm {
namespace {

HWY_EXPORT(normalise_line);

class NormForward final : public Primitive {
 public:
  NormForward(const model::NormTask& task, int threads)
      : task_(task),
        places_(task.groups, task.x),
        samples_(places_.per_sample(), {&task.x, &given_or(task.residual_layout, task.y), &task.y}),
        lines_(samples_.lines()),
        team_(team_for(lines_.items(), threads)),
        count_(static_cast<double>(task.statistics_count > 0 ? task.statistics_count : lines_.pixels())) {}

  [[nodiscard]] std::string name() const override { return "orthant:norm:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return 3 * width() * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    if (task_.training) save_statistics(arguments);
    if (lines_.pixels() == 0) return;
    auto* memory = static_cast<float*>(scratch);
    const Rows rows{.mean = memory, .scale = memory + width(), .beta = memory + 2 * width()};
    for (std::int64_t sample = 0; sample < samples_.parts(); ++sample) {
      fill(rows, arguments, sample);
      apply(arguments, rows, sample);
    }
  }

 private:
  /// One number per channel for every pixel of a widened row.
  struct Rows {
    float* mean;
    float* scale;
    float* beta;
  };

  [[nodiscard]] std::int64_t width() const { return lines_.channels() * lines_.width_factor(); }

  void fill(const Rows& rows, std::span<void* const> arguments, std::int64_t sample) const {
    const auto* gamma = static_cast<const float*>(arguments[at::norm_forward::gamma]);
    const auto* beta = static_cast<const float*>(arguments[at::norm_forward::beta]);
    const auto* saved = static_cast<const float*>(arguments[at::norm_forward::saved]);
    const auto* running_mean = static_cast<const float*>(arguments[at::norm_forward::running_mean]);
    const auto* running_var = static_cast<const float*>(arguments[at::norm_forward::running_var]);
    const auto running_scale = [&](std::int64_t c) {
      return static_cast<float>(1 / std::sqrt(static_cast<double>(running_var[c]) + task_.epsilon));
    };
    for (std::int64_t c = 0; c < lines_.channels(); ++c) {
      rows.mean[c] = task_.training ? saved[places_.first(sample, c)] : running_mean[c];
      rows.scale[c] = (gamma ? gamma[c] : 1) * (task_.training ? saved[places_.second(sample, c)] : running_scale(c));
      rows.beta[c] = beta ? beta[c] : 0;
    }
    for (float* row : {rows.mean, rows.scale, rows.beta})
      repeat_channels(row, lines_.channels(), lines_.width_factor(), row);
  }

  void save_statistics(std::span<void* const> arguments) const {
    auto* running_mean = static_cast<float*>(arguments[at::norm_forward::running_mean]);
    auto* running_var = static_cast<float*>(arguments[at::norm_forward::running_var]);
    const auto* sums = static_cast<const double*>(arguments[at::norm_forward::sums]);
    auto* saved = static_cast<float*>(arguments[at::norm_forward::saved]);
    const auto update = [&](float& running, double batch) {
      running = static_cast<float>((1 - task_.momentum) * static_cast<double>(running) + task_.momentum * batch);
    };
    const std::int64_t count = places_.count();
    for (std::int64_t i = 0; i < samples_.parts() * count; ++i) {
      const std::int64_t first = i / count * 2 * count + i % count, second = first + count;
      const double mean = sums[first] / count_;
      const double squares = sums[second] / count_ - mean * mean;
      const double variance = squares > 0 || std::isnan(squares) ? squares : 0;
      saved[first] = static_cast<float>(mean);
      saved[second] = static_cast<float>(1 / std::sqrt(variance + task_.epsilon));
      if (places_.per_sample()) continue;
      update(running_mean[first], mean);
      update(running_var[first], variance * count_ / (count_ - 1));
    }
  }

  void apply(std::span<void* const> arguments, const Rows& rows, std::int64_t sample) const {
    const auto* residual = static_cast<const float*>(arguments[at::norm_forward::residual]);
    run_team(team_, [&](int thread, int team) {
      samples_.visit_part(sample, thread, team, rows_per_call, [&](const Line& line) {
        const NormApply args{.kind = task_.activation.kind,
                             .slope = static_cast<float>(task_.activation.slope),
                             .x = static_cast<const float*>(arguments[at::norm_forward::x]) + line.offsets[0],
                             .residual = task_.residual ? residual + line.offsets[1] : nullptr,
                             .y = static_cast<float*>(arguments[at::norm_forward::y]) + line.offsets[2],
                             .mean = rows.mean,
                             .scale = rows.scale,
                             .beta = rows.beta,
                             .x_stride = line.strides[0],
                             .residual_stride = line.strides[1],
                             .y_stride = line.strides[2]};
        HWY_DYNAMIC_DISPATCH(normalise_line)(args, line.pixels, line.channels);
      });
    });
  }

  model::NormTask task_;
  Places places_;
  SampleLines samples_;
  const Lines& lines_;
  int team_;
  double count_;
};

}  // namespace

std::unique_ptr<Primitive> make_norm_forward(const model::NormTask& task, int threads) {
  return std::make_unique<NormForward>(task, threads);
}

}  // namespace orthant::kernels::norm
#endif
