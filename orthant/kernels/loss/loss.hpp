#pragma once

#include "orthant/kernels/primitive.hpp"

namespace orthant::kernels::loss {

/// Added to numerator and denominator of each class's soft Dice, so that a class that is absent and not
/// predicted counts as right: (2|pt| + s) / (|p| + |t| + s).
inline constexpr double soft_dice_smoothing = 1e-5;

/// Losses whose target has the output's shape.
std::unique_ptr<Primitive> make_value_loss_sums(const model::LossSumsTask& task, int threads);
std::unique_ptr<Primitive> make_value_loss(const model::LossTask& task, int threads);
/// Losses whose target is one class index per pixel.
std::unique_ptr<Primitive> make_label_loss_sums(const model::LossSumsTask& task, int threads);
std::unique_ptr<Primitive> make_label_loss(const model::LossTask& task, int threads);

/// The sum of the weights of all terms of one kind.
double weight_of(const model::Loss& loss, model::LossKind kind);
/// Writes one loss per term, then their weighted sum.
void write_losses(const model::Loss& loss, const double* by_kind, double* losses);

/// What a line of a loss on values reads and writes.
struct ValueLossLine {
  const float* output;
  const float* target;
  float* diff_output;
  std::int64_t output_stride, target_stride;
};

/// The sums of one thread.
struct alignas(64) ValueLossSums {
  double squares = 0, magnitudes = 0;
};

}  // namespace orthant::kernels::loss
