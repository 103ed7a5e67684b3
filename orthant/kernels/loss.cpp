#include "orthant/kernels/loss.hpp"

#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/lines.hpp"

#include <cmath>

namespace orthant::kernels {
namespace {

using model::LossKind;

/// All in double and plain code: outputs are small beside the activations that lead to them.
class ValueLoss final : public Primitive {
 public:
  ValueLoss(const model::LossTask& task, int threads)
      : loss_(task.loss),
        target_(tensor::channels_last(task.output.extents)),
        lines_({&task.output, &target_}),
        team_(team_for(8 * lines_.items(), threads)),
        inverse_count_(1 / static_cast<double>(tensor::volume(task.global))) {}

  [[nodiscard]] std::string name() const override { return "orthant:loss:scalar"; }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return static_cast<std::int64_t>(sizeof(Sums)) * team_; }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    auto* sums = static_cast<Sums*>(scratch);
    for (int thread = 0; thread < team_; ++thread) sums[thread] = {};
    run_team(team_, [&](int thread, int team) {
      Sums mine;
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) { add(line, arguments, mine); });
      sums[thread] = mine;
    });
    double by_kind[4] = {};
    for (int thread = 0; thread < team_; ++thread) {
      by_kind[static_cast<int>(LossKind::mean_squared_error)] += sums[thread].squares * inverse_count_;
      by_kind[static_cast<int>(LossKind::mean_absolute_error)] += sums[thread].magnitudes * inverse_count_;
    }
    write_losses(loss_, by_kind, static_cast<double*>(arguments[3]));
  }

 private:
  struct alignas(64) Sums {
    double squares = 0, magnitudes = 0;
  };

  void add(const Line& line, std::span<void* const> arguments, Sums& sums) const {
    const double square = 2 * weight_of(loss_, LossKind::mean_squared_error) * inverse_count_;
    const double magnitude = weight_of(loss_, LossKind::mean_absolute_error) * inverse_count_;
    for (std::int64_t p = 0; p < line.pixels; ++p) {
      const std::int64_t at = line.offsets[0] + p * line.strides[0];
      const float* output = static_cast<const float*>(arguments[0]) + at;
      const float* target = static_cast<const float*>(arguments[1]) + line.offsets[1] + p * line.strides[1];
      float* diff = arguments[2] ? static_cast<float*>(arguments[2]) + at : nullptr;
      for (std::int64_t c = 0; c < line.channels; ++c) {
        const double error = static_cast<double>(output[c]) - static_cast<double>(target[c]);
        sums.squares += error * error;
        sums.magnitudes += std::abs(error);
        const double sign = error > 0 ? 1 : error < 0 ? -1 : 0;
        if (diff) diff[c] = static_cast<float>(square * error + magnitude * sign);
      }
    }
  }

  model::Loss loss_;
  tensor::Layout target_;
  Lines lines_;
  int team_;
  double inverse_count_;
};

}  // namespace

double weight_of(const model::Loss& loss, LossKind kind) {
  double weight = 0;
  for (const model::LossTerm& term : loss.terms) weight += term.kind == kind ? term.weight : 0;
  return weight;
}

void write_losses(const model::Loss& loss, const double* by_kind, double* losses) {
  double sum = 0;
  for (const model::LossTerm& term : loss.terms) {
    *losses = by_kind[static_cast<int>(term.kind)];
    sum += term.weight * *losses++;
  }
  *losses = sum;
}

std::unique_ptr<Primitive> make_value_loss(const model::LossTask& task, int threads) {
  return std::make_unique<ValueLoss>(task, threads);
}

std::unique_ptr<Primitive> make_loss(const model::LossTask& task, int threads) {
  return model::takes_labels(task.loss) ? make_label_loss(task, threads) : make_value_loss(task, threads);
}

}  // namespace orthant::kernels
