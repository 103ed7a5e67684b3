#include "orthant/kernels/norm.hpp"

#include "orthant/base/error.hpp"
#include "orthant/kernels/factories.hpp"

#include <algorithm>

namespace orthant::kernels {

const tensor::Layout& given_or(const tensor::Layout& layout, const tensor::Layout& otherwise) {
  return layout == tensor::Layout{} ? otherwise : layout;
}

void repeat_channels(const float* numbers, std::int64_t channels, std::int64_t factor, float* row) {
  for (std::int64_t pixel = 0; pixel < factor; ++pixel) std::copy_n(numbers, channels, row + pixel * channels);
}

std::unique_ptr<Primitive> make_norm(const model::NormTask& task, int threads) {
  if (task.pass != model::Pass::forward) return make_norm_backward(task, threads);
  if (task.training && task.statistics_count == 1) {
    base::fail(base::Exit::bad_data,
               "batch_norm has one value per channel to train on; use a larger mini-batch or input");
  }
  return make_norm_forward(task, threads);
}

}  // namespace orthant::kernels
