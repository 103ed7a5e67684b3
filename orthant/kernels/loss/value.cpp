#include "orthant/kernels/lines.hpp"
#include "orthant/kernels/loss/loss.hpp"
#include "orthant/kernels/simd.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/loss/value.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::loss::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls body(tag, i) over [0, count) with tags of doubles: whole vectors, then single lanes.
template <class Body>
HWY_INLINE void for_doubles(std::int64_t count, Body body) {
  const hn::ScalableTag<double> whole;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(whole));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) body(whole, i);
  for (; i < count; ++i) body(hn::CappedTag<double, 1>(), i);
}

/// output - target
template <class D>
HWY_INLINE hn::Vec<D> error_at(D d, const float* output, const float* target, std::int64_t i) {
  const hn::Rebind<float, D> floats;
  return hn::Sub(hn::PromoteTo(d, hn::LoadU(floats, output + i)), hn::PromoteTo(d, hn::LoadU(floats, target + i)));
}

void value_loss_sums_line(const ValueLossLine& line, std::int64_t pixels, std::int64_t channels, ValueLossSums& sums) {
  const hn::ScalableTag<double> whole;
  auto squares = hn::Zero(whole), magnitudes = hn::Zero(whole);
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* output = line.output + p * line.output_stride;
    const float* target = line.target + p * line.target_stride;
    for_doubles(channels, [&]<class D>(D d, std::int64_t i) HWY_ATTR {
      const auto error = error_at(d, output, target, i);
      if constexpr (std::is_same_v<D, hn::ScalableTag<double>>) {
        squares = hn::MulAdd(error, error, squares);
        magnitudes = hn::Add(magnitudes, hn::Abs(error));
      } else {
        const double lane = hn::GetLane(error);
        sums.squares += lane * lane;
        sums.magnitudes += std::abs(lane);
      }
    });
  }
  sums.squares += hn::GetLane(hn::SumOfLanes(whole, squares));
  sums.magnitudes += hn::GetLane(hn::SumOfLanes(whole, magnitudes));
}

/// diff_output = square * error + magnitude * sign(error)
void value_loss_gradient_line(const ValueLossLine& line, std::int64_t pixels, std::int64_t channels, double square,
                              double magnitude) {
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* output = line.output + p * line.output_stride;
    const float* target = line.target + p * line.target_stride;
    float* diff = line.diff_output + p * line.output_stride;
    for_doubles(channels, [&]<class D>(D d, std::int64_t i) HWY_ATTR {
      const auto error = error_at(d, output, target, i);
      const auto slope = hn::CopySign(hn::Set(d, magnitude), error);
      const auto signed_slope = hn::IfThenZeroElse(hn::Eq(error, hn::Zero(d)), slope);
      const auto gradient = hn::MulAdd(hn::Set(d, square), error, signed_slope);
      hn::StoreU(hn::DemoteTo(hn::Rebind<float, D>(), gradient), hn::Rebind<float, D>(), diff + i);
    });
  }
}

}  // namespace
}  // namespace orthant::kernels::loss::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::loss {
namespace {

HWY_EXPORT(value_loss_sums_line);
HWY_EXPORT(value_loss_gradient_line);

using model::LossKind;

/// The pixels of output and target.
Lines lines_of(const tensor::Layout& output) {
  const tensor::Layout target = tensor::channels_last(output.extents);
  return {&output, &target};
}

ValueLossLine line_of(const Line& line, const void* output, const void* target, void* diff) {
  return {.output = static_cast<const float*>(output) + line.offsets[0],
          .target = static_cast<const float*>(target) + line.offsets[1],
          .diff_output = diff ? static_cast<float*>(diff) + line.offsets[0] : nullptr,
          .output_stride = line.strides[0],
          .target_stride = line.strides[1]};
}

class ValueLossSumsPrimitive final : public Primitive {
 public:
  ValueLossSumsPrimitive(const model::LossSumsTask& task, int threads)
      : loss_(task.loss), lines_(lines_of(task.output)), team_(team_for(lines_.items(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:loss_sums:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return static_cast<std::int64_t>(sizeof(ValueLossSums)) * team_;
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    auto* of_thread = static_cast<ValueLossSums*>(scratch);
    for (int thread = 0; thread < team_; ++thread) of_thread[thread] = {};
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        HWY_DYNAMIC_DISPATCH(value_loss_sums_line)
        (line_of(line, arguments[at::loss_sums::output], arguments[at::loss_sums::target], nullptr), line.pixels,
         line.channels, of_thread[thread]);
      });
    });
    ValueLossSums total;
    for (int thread = 0; thread < team_; ++thread) {
      total.squares += of_thread[thread].squares;
      total.magnitudes += of_thread[thread].magnitudes;
    }
    auto* sums = static_cast<double*>(arguments[at::loss_sums::sums]);
    for (const model::LossTerm& term : loss_.terms) {
      *sums++ = term.kind == LossKind::mean_squared_error ? total.squares : total.magnitudes;
    }
  }

 private:
  model::Loss loss_;
  Lines lines_;
  int team_;
};

class ValueLoss final : public Primitive {
 public:
  ValueLoss(const model::LossTask& task, int threads)
      : loss_(task.loss),
        lines_(lines_of(task.output)),
        team_(team_for(lines_.items(), threads)),
        inverse_count_(1 / static_cast<double>(tensor::volume(task.global))) {}

  [[nodiscard]] std::string name() const override { return "orthant:loss:" + simd_target(); }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    double by_kind[4] = {};
    const auto* sums = static_cast<const double*>(arguments[at::loss::sums]);
    for (const model::LossTerm& term : loss_.terms) by_kind[static_cast<int>(term.kind)] = *sums++ * inverse_count_;
    write_losses(loss_, by_kind, static_cast<double*>(arguments[at::loss::loss]));
    if (!arguments[at::loss::diff_output]) return;
    const double square = 2 * weight_of(loss_, LossKind::mean_squared_error) * inverse_count_;
    const double magnitude = weight_of(loss_, LossKind::mean_absolute_error) * inverse_count_;
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        HWY_DYNAMIC_DISPATCH(value_loss_gradient_line)
        (line_of(line, arguments[at::loss::output], arguments[at::loss::target], arguments[at::loss::diff_output]),
         line.pixels, line.channels, square, magnitude);
      });
    });
  }

 private:
  model::Loss loss_;
  Lines lines_;
  int team_;
  double inverse_count_;
};

}  // namespace

std::unique_ptr<Primitive> make_value_loss_sums(const model::LossSumsTask& task, int threads) {
  return std::make_unique<ValueLossSumsPrimitive>(task, threads);
}

std::unique_ptr<Primitive> make_value_loss(const model::LossTask& task, int threads) {
  return std::make_unique<ValueLoss>(task, threads);
}

}  // namespace orthant::kernels::loss
#endif
