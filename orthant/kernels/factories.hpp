#pragma once

#include "orthant/kernels/primitive.hpp"

// One factory per task; make_primitive picks by type.

namespace orthant::kernels {
std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, int threads);
std::unique_ptr<Primitive> make_prepare_weights(const model::PrepareWeightsTask& task, int threads);
}  // namespace orthant::kernels

namespace orthant::kernels::dense {
std::unique_ptr<Primitive> make_dense(const model::DenseTask& task, int threads);
}  // namespace orthant::kernels::dense

namespace orthant::kernels::pool {
std::unique_ptr<Primitive> make_pool(const model::PoolTask& task, int threads);
std::unique_ptr<Primitive> make_peaks(const model::PeaksTask& task, int threads);
std::unique_ptr<Primitive> make_highest_peak(const model::HighestPeakTask& task);
}  // namespace orthant::kernels::pool

namespace orthant::kernels::norm {
std::unique_ptr<Primitive> make_norm_sums(const model::NormSumsTask& task, int threads);
std::unique_ptr<Primitive> make_norm(const model::NormTask& task, int threads);
std::unique_ptr<Primitive> make_pixel_norm(const model::PixelNormTask& task, int threads);
}  // namespace orthant::kernels::norm

namespace orthant::kernels::product {
std::unique_ptr<Primitive> make_prelu(const model::PReluTask& task, int threads);
std::unique_ptr<Primitive> make_product(const model::ProductTask& task, int threads);
std::unique_ptr<Primitive> make_product_sums(const model::ProductSumsTask& task, int threads);
}  // namespace orthant::kernels::product

namespace orthant::kernels::remap {
std::unique_ptr<Primitive> make_remap(const model::RemapTask& task, int threads);
}  // namespace orthant::kernels::remap

namespace orthant::kernels::elementwise {
std::unique_ptr<Primitive> make_activation(const model::ActivationTask& task, int threads);
std::unique_ptr<Primitive> make_softmax(const model::SoftmaxTask& task, int threads);
std::unique_ptr<Primitive> make_copy(const model::CopyTask& task, int threads);
std::unique_ptr<Primitive> make_copy_pieces(const model::CopyPiecesTask& task, int threads);
std::unique_ptr<Primitive> make_fill(const model::FillTask& task, int threads);
std::unique_ptr<Primitive> make_add(const model::AddTask& task, int threads);
std::unique_ptr<Primitive> make_dropout(const model::DropoutTask& task, int threads);
std::unique_ptr<Primitive> make_bias_gradient(const model::BiasGradientTask& task, int threads);
std::unique_ptr<Primitive> make_update(const model::UpdateTask& task, int threads);
}  // namespace orthant::kernels::elementwise

namespace orthant::kernels::loss {
std::unique_ptr<Primitive> make_loss_sums(const model::LossSumsTask& task, int threads);
std::unique_ptr<Primitive> make_loss(const model::LossTask& task, int threads);
}  // namespace orthant::kernels::loss
