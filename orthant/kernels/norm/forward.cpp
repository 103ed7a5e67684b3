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
        lines_({&task.x, &given_or(task.residual_layout, task.y), &task.y}),
        team_(team_for(lines_.items(), threads)),
        count_(static_cast<double>(task.statistics_count > 0 ? task.statistics_count : lines_.pixels())) {}

  [[nodiscard]] std::string name() const override { return "orthant:norm:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return 3 * width() * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const std::int64_t channels = lines_.channels(), factor = lines_.width_factor();
    if (task_.training) save_statistics(arguments);
    if (lines_.pixels() == 0) return;
    auto* memory = static_cast<float*>(scratch);
    const Rows rows{.mean = memory, .scale = memory + width(), .beta = memory + 2 * width()};
    const auto* gamma = static_cast<const float*>(arguments[at::norm_forward::gamma]);
    const auto* mean =
        static_cast<const float*>(arguments[task_.training ? at::norm_forward::saved : at::norm_forward::running_mean]);
    for (std::int64_t c = 0; c < channels; ++c) rows.scale[c] = gamma[c] * inverse_std(arguments, c);
    repeat_channels(mean, channels, factor, rows.mean);
    repeat_channels(rows.scale, channels, factor, rows.scale);
    repeat_channels(static_cast<const float*>(arguments[at::norm_forward::beta]), channels, factor, rows.beta);
    apply(arguments, rows);
  }

 private:
  /// One number per channel for every pixel of a widened row.
  struct Rows {
    float* mean;
    float* scale;
    float* beta;
  };

  [[nodiscard]] std::int64_t width() const { return lines_.channels() * lines_.width_factor(); }

  [[nodiscard]] float inverse_std(std::span<void* const> arguments, std::int64_t c) const {
    if (task_.training) return static_cast<const float*>(arguments[at::norm_forward::saved])[lines_.channels() + c];
    const auto variance = static_cast<double>(static_cast<const float*>(arguments[at::norm_forward::running_var])[c]);
    return static_cast<float>(1 / std::sqrt(variance + task_.epsilon));
  }

  void save_statistics(std::span<void* const> arguments) const {
    const std::int64_t channels = lines_.channels();
    auto* running_mean = static_cast<float*>(arguments[at::norm_forward::running_mean]);
    auto* running_var = static_cast<float*>(arguments[at::norm_forward::running_var]);
    const auto* sums = static_cast<const double*>(arguments[at::norm_forward::sums]);
    auto* saved = static_cast<float*>(arguments[at::norm_forward::saved]);
    const auto update = [&](float& running, double batch) {
      running = static_cast<float>((1 - task_.momentum) * static_cast<double>(running) + task_.momentum * batch);
    };
    for (std::int64_t c = 0; c < channels; ++c) {
      const double mean = sums[c] / count_;
      const double squares = sums[channels + c] / count_ - mean * mean;
      const double variance = squares > 0 || std::isnan(squares) ? squares : 0;
      saved[c] = static_cast<float>(mean);
      saved[channels + c] = static_cast<float>(1 / std::sqrt(variance + task_.epsilon));
      update(running_mean[c], mean);
      update(running_var[c], variance * count_ / (count_ - 1));
    }
  }

  void apply(std::span<void* const> arguments, const Rows& rows) const {
    const auto* residual = static_cast<const float*>(arguments[at::norm_forward::residual]);
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
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
  Lines lines_;
  int team_;
  double count_;
};

}  // namespace

std::unique_ptr<Primitive> make_norm_forward(const model::NormTask& task, int threads) {
  return std::make_unique<NormForward>(task, threads);
}

}  // namespace orthant::kernels::norm
#endif
