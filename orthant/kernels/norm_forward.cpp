#include "orthant/kernels/norm.hpp"
#include "orthant/kernels/simd.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/norm_forward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/activation_inl.hpp"
#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::HWY_NAMESPACE {
namespace {

/// `Rows` rows at a time, so that the sums stay in registers for a while.
template <int Rows>
HWY_INLINE void sum_rows(const NormSums& args, const float* row, std::int64_t channels) {
  for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto shift = hn::LoadU(d, args.shift + i);
    auto sum = hn::LoadU(d, args.sum + i);
    auto squares = hn::LoadU(d, args.squares + i);
    for (int r = 0; r < Rows; ++r) {
      prefetch_ahead(row + r * args.x_stride + i);
      const auto x = hn::Sub(hn::LoadU(d, row + r * args.x_stride + i), shift);
      sum = hn::Add(sum, x);
      squares = hn::MulAdd(x, x, squares);
    }
    hn::StoreU(sum, d, args.sum + i);
    hn::StoreU(squares, d, args.squares + i);
  });
}

void norm_sums_line(const NormSums& line, std::int64_t pixels, std::int64_t channels) {
  const NormSums args = line;  // a copy that no store can change stays in registers
  std::int64_t p = 0;
  for (; p + 4 <= pixels; p += 4) sum_rows<4>(args, args.x + p * args.x_stride, channels);
  for (; p < pixels; ++p) sum_rows<1>(args, args.x + p * args.x_stride, channels);
}

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
}  // namespace orthant::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels {
namespace {

HWY_EXPORT(norm_sums_line);
HWY_EXPORT(normalise_line);

class NormForward final : public Primitive {
 public:
  NormForward(const model::NormTask& task, int threads)
      : task_(task),
        lines_({&task.x, &given_or(task.residual_layout, task.y), &task.y}),
        team_(team_for(lines_.items(), threads)),
        sums_(2, lines_.channels(), lines_.width_factor(), team_),
        count_(static_cast<double>(task.statistics_count > 0 ? task.statistics_count : lines_.pixels())) {}

  [[nodiscard]] std::string name() const override { return "orthant:norm:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return sums_.bytes() + 3 * sums_.width() * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const std::int64_t channels = lines_.channels(), factor = lines_.width_factor();
    Rows rows = rows_of(scratch);
    if (lines_.pixels() == 0) return;
    if (task_.training) {
      sum(static_cast<const float*>(arguments[0]), rows, scratch);
      save_statistics(arguments, rows, scratch);
    }
    const auto* gamma = static_cast<const float*>(arguments[1]);
    const auto* mean = static_cast<const float*>(arguments[task_.training ? 5 : 3]);
    for (std::int64_t c = 0; c < channels; ++c) rows.scale[c] = gamma[c] * inverse_std(arguments, c);
    repeat_channels(mean, channels, factor, rows.mean);
    repeat_channels(rows.scale, channels, factor, rows.scale);
    repeat_channels(static_cast<const float*>(arguments[2]), channels, factor, rows.beta);
    apply(arguments, rows);
  }

 private:
  /// One number per channel for every pixel of a widened row.
  struct Rows {
    float* mean;
    float* scale;
    float* beta;
  };

  [[nodiscard]] Rows rows_of(void* scratch) const {
    auto* first = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + sums_.bytes());
    return {.mean = first, .scale = first + sums_.width(), .beta = first + 2 * sums_.width()};
  }

  [[nodiscard]] float inverse_std(std::span<void* const> arguments, std::int64_t c) const {
    if (task_.training) return static_cast<const float*>(arguments[5])[lines_.channels() + c];
    const auto variance = static_cast<double>(static_cast<const float*>(arguments[4])[c]);
    return static_cast<float>(1 / std::sqrt(variance + task_.epsilon));
  }

  /// Sums of x - (first pixel), which is near the mean: no cancellation where the mean is far from zero.
  void sum(const float* x, const Rows& rows, void* scratch) const {
    repeat_channels(x + task_.x.offset, lines_.channels(), lines_.width_factor(), rows.mean);
    for (int thread = 0; thread < team_; ++thread) sums_.clear(scratch, thread);
    run_team(team_, [&](int thread, int team) {
      RowCount count;
      lines_.visit_part(thread, team, ChannelSums::block_rows, [&](const Line& line) {
        if (count.is_full(line.pixels)) sums_.flush(scratch, thread);
        const NormSums args{.x = x + line.offsets[0],
                            .shift = rows.mean,
                            .sum = sums_.block(scratch, thread, 0),
                            .squares = sums_.block(scratch, thread, 1),
                            .x_stride = line.strides[0]};
        HWY_DYNAMIC_DISPATCH(norm_sums_line)(args, line.pixels, line.channels);
      });
      sums_.flush(scratch, thread);
    });
  }

  void save_statistics(std::span<void* const> arguments, const Rows& rows, const void* scratch) const {
    auto* running_mean = static_cast<float*>(arguments[3]);
    auto* running_var = static_cast<float*>(arguments[4]);
    auto* saved = static_cast<float*>(arguments[5]);
    const auto update = [&](float& running, double batch) {
      running = static_cast<float>((1 - task_.momentum) * static_cast<double>(running) + task_.momentum * batch);
    };
    for (std::int64_t c = 0; c < lines_.channels(); ++c) {
      const double shifted_mean = sums_.total(scratch, team_, 0, c) / count_;
      const double mean = static_cast<double>(rows.mean[c]) + shifted_mean;
      const double squares = sums_.total(scratch, team_, 1, c) / count_ - shifted_mean * shifted_mean;
      const double variance = squares > 0 || std::isnan(squares) ? squares : 0;
      saved[c] = static_cast<float>(mean);
      saved[lines_.channels() + c] = static_cast<float>(1 / std::sqrt(variance + task_.epsilon));
      update(running_mean[c], mean);
      update(running_var[c], variance * count_ / (count_ - 1));
    }
  }

  void apply(std::span<void* const> arguments, const Rows& rows) const {
    const auto* residual = static_cast<const float*>(arguments[6]);
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        const NormApply args{.kind = task_.activation.kind,
                             .slope = static_cast<float>(task_.activation.slope),
                             .x = static_cast<const float*>(arguments[0]) + line.offsets[0],
                             .residual = task_.residual ? residual + line.offsets[1] : nullptr,
                             .y = static_cast<float*>(arguments[7]) + line.offsets[2],
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
  ChannelSums sums_;
  double count_;
};

}  // namespace

std::unique_ptr<Primitive> make_norm_forward(const model::NormTask& task, int threads) {
  return std::make_unique<NormForward>(task, threads);
}

}  // namespace orthant::kernels
#endif
