#pragma once

#include "orthant/kernels/primitive.hpp"

namespace orthant::kernels::winograd {

/// True if a task is Winograd's: three taps or one per dim, stride and dilation 1, channels side by side.
bool applies(const model::ConvTask& task);

/// What a fused activation multiplies negative results with.
float slope_of(const model::Activation& activation);

/// Kernels for tasks that it applies to: forward and backward_data; backward_weights.
std::unique_ptr<Primitive> make_correlation(const model::ConvTask& task, int threads);
std::unique_ptr<Primitive> make_weight_gradient(const model::ConvTask& task, int threads);

/// The same for few channels of src and three taps in w: forward and backward_weights, of tasks that it applies to.
bool applies_narrow(const model::ConvTask& task);
std::unique_ptr<Primitive> make_narrow(const model::ConvTask& task, int threads);

}  // namespace orthant::kernels::winograd
