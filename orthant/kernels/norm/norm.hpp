#pragma once

#include "orthant/kernels/channel_sums.hpp"
#include "orthant/kernels/lines.hpp"
#include "orthant/kernels/primitive.hpp"

namespace orthant::kernels::norm {

std::unique_ptr<Primitive> make_norm_forward(const model::NormTask& task, int threads);
std::unique_ptr<Primitive> make_norm_backward(const model::NormTask& task, int threads);

/// `layout` where a task gives one, else the one it follows.
const tensor::Layout& given_or(const tensor::Layout& layout, const tensor::Layout& otherwise);

/// Where the numbers of a channel are among sums and saved statistics: of all samples, or of each and a group.
class Places {
 public:
  Places(const model::SampleGroups& groups, const tensor::Layout& x)
      : groups_(groups), count_(groups.groups > 0 ? groups.groups : x.extents.c) {}

  [[nodiscard]] bool per_sample() const { return groups_.groups > 0; }
  /// Means of a sample, after which come as many second numbers.
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::int64_t first(std::int64_t sample, std::int64_t channel) const {
    if (!per_sample()) return channel;
    return 2 * sample * count_ + (groups_.first + channel) / groups_.channels;
  }
  [[nodiscard]] std::int64_t second(std::int64_t sample, std::int64_t channel) const {
    return first(sample, channel) + count_;
  }

 private:
  model::SampleGroups groups_;
  std::int64_t count_;
};

/// Copies one number per channel once for every pixel of a widened row.
void repeat_channels(const float* numbers, std::int64_t channels, std::int64_t factor, float* row);

/// sum += x - shift and squares += (x - shift)^2 per channel, over the rows of a line.
struct NormSums {
  const float* x;
  const float* shift;
  float* sum;
  float* squares;
  std::int64_t x_stride;
};

/// y = activation((x - mean) * scale + beta + residual) on a line; residual may be null.
struct NormApply {
  model::ActivationKind kind;
  float slope;
  const float* x;
  const float* residual;
  float* y;
  const float* mean;
  const float* scale;
  const float* beta;
  std::int64_t x_stride, residual_stride, y_stride;
};

/// The gradient dz = (diff_y + diff_y2) * activation'(y) on a line; diff_y2 and y may be null.
struct NormGradient {
  model::ActivationKind kind;
  float slope;
  const float* diff_y;
  const float* diff_y2;
  const float* x;
  const float* y;
  const float* mean;
  const float* scale;  ///< gamma / std
  const float* beta;
  std::int64_t diff_y_stride, diff_y2_stride, x_stride, y_stride;
};

/// Numbers of gradient_of, one per channel for every pixel of a widened row.
struct NormGradientRows {
  const float* mean;
  const float* scale;
  const float* beta;
};

/// Makes them from the arguments gamma, beta and saved (4 to 6, as both backward tasks have them) in `memory`: three
/// rows.
NormGradientRows gradient_rows(std::span<void* const> arguments, const Lines& lines, const Places& places,
                               std::int64_t sample, float* memory);
/// The arguments diff_y, diff_y2, x, y (0 to 3, and the first four tensors of the line).
NormGradient gradient_of(const model::Activation& activation, std::span<void* const> arguments,
                         const NormGradientRows& rows, const Line& line);

/// sum += dz and product += dz * (x - mean) per channel; dz is kept where `dz` is not null.
struct NormGradientSums {
  float* sum;
  float* product;
  float* dz;
  std::int64_t dz_stride;
};

/// diff_x = scale * dz - offset - (x - mean) * factor.
struct NormGradientApply {
  const float* offset;
  const float* factor;
  float* diff_x;
  std::int64_t diff_x_stride;
};

/// Pixels of a line, forward; gamma and beta may be null. `saved` has the mean and 1/std of every pixel.
struct PixelNorm {
  const float* x;
  const float* gamma;
  const float* beta;
  float* saved;
  float* y;
  std::int64_t x_stride, y_stride;
  double epsilon;
};

/// Backward; `gamma_sums` and `beta_sums` are added to, item by item of a row.
struct PixelNormGradient {
  const float* diff_y;
  const float* x;
  const float* gamma;
  const float* saved;
  float* diff_x;
  float* gamma_sums;
  float* beta_sums;
  std::int64_t diff_y_stride, x_stride, diff_x_stride;
};

}  // namespace orthant::kernels::norm
