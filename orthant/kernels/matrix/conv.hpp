#pragma once

#include "orthant/kernels/primitive.hpp"

namespace orthant::kernels::matrix {

/// Kernels for tasks that it applies to: forward and backward_data; backward_weights.
std::unique_ptr<Primitive> make_product(const model::ConvTask& task, int threads);
std::unique_ptr<Primitive> make_weight_gradient(const model::ConvTask& task, int threads);

}  // namespace orthant::kernels::matrix
