#include "orthant/kernels/primitive.hpp"

#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/instruction_set.hpp"

namespace orthant::kernels {
namespace {

struct Factory {
  int threads;

  auto operator()(const model::ConvTask& task) const { return make_conv(task, threads); }
  auto operator()(const model::PrepareWeightsTask& task) const { return make_prepare_weights(task, threads); }
  auto operator()(const model::DenseTask& task) const { return dense::make_dense(task, threads); }
  auto operator()(const model::PoolTask& task) const { return pool::make_pool(task, threads); }
  auto operator()(const model::NormSumsTask& task) const { return norm::make_norm_sums(task, threads); }
  auto operator()(const model::NormTask& task) const { return norm::make_norm(task, threads); }
  auto operator()(const model::PixelNormTask& task) const { return norm::make_pixel_norm(task, threads); }
  auto operator()(const model::PReluTask& task) const { return product::make_prelu(task, threads); }
  auto operator()(const model::ProductTask& task) const { return product::make_product(task, threads); }
  auto operator()(const model::ProductSumsTask& task) const { return product::make_product_sums(task, threads); }
  auto operator()(const model::RemapTask& task) const { return remap::make_remap(task, threads); }
  auto operator()(const model::PeaksTask& task) const { return pool::make_peaks(task, threads); }
  auto operator()(const model::HighestPeakTask& task) const { return pool::make_highest_peak(task); }
  auto operator()(const model::ActivationTask& task) const { return elementwise::make_activation(task, threads); }
  auto operator()(const model::SoftmaxTask& task) const { return elementwise::make_softmax(task, threads); }
  auto operator()(const model::CopyTask& task) const { return elementwise::make_copy(task, threads); }
  auto operator()(const model::CopyPiecesTask& task) const { return elementwise::make_copy_pieces(task, threads); }
  auto operator()(const model::FillTask& task) const { return elementwise::make_fill(task, threads); }
  auto operator()(const model::AddTask& task) const { return elementwise::make_add(task, threads); }
  auto operator()(const model::DropoutTask& task) const { return elementwise::make_dropout(task, threads); }
  auto operator()(const model::BiasGradientTask& task) const { return elementwise::make_bias_gradient(task, threads); }
  auto operator()(const model::LossSumsTask& task) const { return loss::make_loss_sums(task, threads); }
  auto operator()(const model::LossTask& task) const { return loss::make_loss(task, threads); }
  auto operator()(const model::UpdateTask& task) const { return elementwise::make_update(task, threads); }
};

}  // namespace

std::unique_ptr<Primitive> make_primitive(const model::Task& task, int threads) {
  limit_instructions();
  return std::visit(Factory{threads}, task);
}

}  // namespace orthant::kernels
