#pragma once

#include "orthant/kernels/primitive.hpp"

#include <string>
#include <vector>

namespace orthant::kernels {

/// What a PrepareWeightsTask writes for a convolution.
struct PreparedWeights {
  std::int64_t bytes = 0;  ///< 0 if the kernel takes weights as they are
  /// All that the bytes depend on apart from the weights: convolutions of the same weights with equal forms can read
  /// the same prepared ones.
  std::string form;
};
/// Of the algorithm that the task names, or that the rule chooses for it.
PreparedWeights prepared_weights(const model::ConvTask& task, int threads);

}  // namespace orthant::kernels

namespace orthant::kernels::direct {
/// Our own convolution: any window, groups, channels and strided layouts. Never refuses.
std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, int threads);
}  // namespace orthant::kernels::direct

namespace orthant::kernels::onednn {
/// oneDNN's best implementation, or null where it has only a reference one, the layouts are not dense, dst is not all
/// that src allows, or gradients are to be added.
std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, int threads);
/// Of a task that make_conv takes.
PreparedWeights prepared_weights(const model::ConvTask& task, int threads);
std::unique_ptr<Primitive> make_prepare_weights(const model::ConvTask& task, int threads);
}  // namespace orthant::kernels::onednn

namespace orthant::kernels::winograd {
/// F(2,3) Winograd in every dim with three taps, or null where it does not apply (strides, dilation, other windows).
std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, int threads);
/// Of a task that make_conv takes.
PreparedWeights prepared_weights(const model::ConvTask& task);
std::unique_ptr<Primitive> make_prepare_weights(const model::ConvTask& task, int threads);
}  // namespace orthant::kernels::winograd

namespace orthant::kernels::matrix {
/// Matrix products over pixels, or null where there are groups, and, but for gradients of weights, where windows
/// overlap or are padded.
std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, int threads);
}  // namespace orthant::kernels::matrix

namespace orthant::kernels {

/// Every way to run a task, the one that make_conv takes first; prepared weights leave that one only.
struct ConvCandidate {
  model::Algorithm algorithm;
  std::unique_ptr<Primitive> primitive;
};
std::vector<ConvCandidate> conv_candidates(const model::ConvTask& task, int threads);

}  // namespace orthant::kernels
