#include "orthant/kernels/norm/norm.hpp"

#include "orthant/base/error.hpp"
#include "orthant/kernels/factories.hpp"

#include <algorithm>

namespace orthant::kernels::norm {

const tensor::Layout& given_or(const tensor::Layout& layout, const tensor::Layout& otherwise) {
  return tensor::is_given(layout) ? layout : otherwise;
}

void repeat_channels(const float* numbers, std::int64_t channels, std::int64_t factor, float* row) {
  for (std::int64_t pixel = 0; pixel < factor; ++pixel) std::copy_n(numbers, channels, row + pixel * channels);
}

// A NormSumsTask's backward pass has these arguments at the same positions as a NormTask's.
static_assert(at::norm_backward::diff_y == at::norm_sums_backward::diff_y &&
              at::norm_backward::diff_y2 == at::norm_sums_backward::diff_y2 &&
              at::norm_backward::x == at::norm_sums_backward::x && at::norm_backward::y == at::norm_sums_backward::y &&
              at::norm_backward::gamma == at::norm_sums_backward::gamma &&
              at::norm_backward::beta == at::norm_sums_backward::beta &&
              at::norm_backward::saved == at::norm_sums_backward::saved);

NormGradientRows gradient_rows(std::span<void* const> arguments, const Lines& lines, const Places& places,
                               std::int64_t sample, float* memory) {
  const std::int64_t channels = lines.channels(), factor = lines.width_factor(), width = channels * factor;
  const auto* gamma = static_cast<const float*>(arguments[at::norm_backward::gamma]);
  const auto* saved = static_cast<const float*>(arguments[at::norm_backward::saved]);
  const auto* beta = static_cast<const float*>(arguments[at::norm_backward::beta]);
  float* scale = memory + width;
  float* shift = memory + 2 * width;
  for (std::int64_t c = 0; c < channels; ++c) {
    memory[c] = saved[places.first(sample, c)];
    scale[c] = (gamma ? gamma[c] : 1) * saved[places.second(sample, c)];
    shift[c] = beta ? beta[c] : 0;
  }
  for (float* row : {memory, scale, shift}) repeat_channels(row, channels, factor, row);
  return {.mean = memory, .scale = scale, .beta = memory + 2 * width};
}

NormGradient gradient_of(const model::Activation& activation, std::span<void* const> arguments,
                         const NormGradientRows& rows, const Line& line) {
  using namespace at::norm_backward;
  const auto first_of = [&](std::size_t tensor) -> const float* {
    return arguments[tensor] ? static_cast<const float*>(arguments[tensor]) + line.offsets[tensor] : nullptr;
  };
  return {.kind = activation.kind,
          .slope = static_cast<float>(activation.slope),
          .diff_y = first_of(diff_y),
          .diff_y2 = first_of(diff_y2),
          .x = first_of(x),
          .y = first_of(y),
          .mean = rows.mean,
          .scale = rows.scale,
          .beta = rows.beta,
          .diff_y_stride = line.strides[diff_y],
          .diff_y2_stride = line.strides[diff_y2],
          .x_stride = line.strides[x],
          .y_stride = line.strides[y]};
}

std::unique_ptr<Primitive> make_norm(const model::NormTask& task, int threads) {
  if (task.pass != model::Pass::forward) return make_norm_backward(task, threads);
  if (task.training && task.statistics_count == 1) {
    base::fail(base::Exit::bad_data, "{} has one value per {} to train on; use a larger {}",
               task.groups.groups > 0 ? "a norm per sample" : "batch_norm",
               task.groups.groups > 0 ? "sample and group" : "channel",
               task.groups.groups > 0 ? "input" : "mini-batch or input");
  }
  return make_norm_forward(task, threads);
}

}  // namespace orthant::kernels::norm
