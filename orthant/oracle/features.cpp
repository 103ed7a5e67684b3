#include "orthant/base/format.hpp"
#include "orthant/model/signature.hpp"
#include "orthant/oracle/prices.hpp"

#include <algorithm>
#include <array>

namespace orthant::oracle {
namespace {

using tensor::Layout;

std::string text_of(const tensor::Extent3& extent) { return fmt::format("{}x{}x{}", extent.d, extent.h, extent.w); }

/// "2d", or "3d" if anything is deeper than one cell.
const char* dims_of(const tensor::Window& window, const Layout& src) {
  return window.size.d == 1 && src.extents.d == 1 ? "2d" : "3d";
}

std::string text_of(const tensor::Window& window) {
  return fmt::format("{}/{}", text_of(window.size), text_of(window.stride));
}

std::string family_of(const model::ConvTask& task) {
  return fmt::format("conv {} {} {} {}{}{}", dims_of(task.window, task.src), model::name_of(task.algorithm),
                     model::name_of(task.pass), text_of(task.window), task.groups > 1 ? " grouped" : "",
                     task.window.dilation == tensor::cube(1) ? "" : " dilated");
}
std::string family_of(const model::PrepareWeightsTask& task) {
  return fmt::format("prepare_weights {}", model::name_of(task.conv.algorithm));
}
std::string family_of(const model::DenseTask& task) { return fmt::format("dense {}", model::name_of(task.pass)); }
std::string family_of(const model::PoolTask& task) {
  return fmt::format("pool {} {} {} {}", model::name_of(task.pass),
                     task.kind == model::PoolKind::max ? "max" : "average", dims_of(task.window, task.src),
                     text_of(task.window));
}
std::string family_of(const model::NormSumsTask& task) {
  return fmt::format("norm_sums {}", model::name_of(task.pass));
}
std::string family_of(const model::NormTask& task) {
  return fmt::format("norm {}{}", model::name_of(task.pass), task.residual ? " residual" : "");
}
std::string family_of(const model::ActivationTask& task) {
  return fmt::format("activation {}", model::name_of(task.pass));
}
std::string family_of(const model::PixelNormTask& task) {
  return fmt::format("pixel_norm {}", model::name_of(task.pass));
}
std::string family_of(const model::PReluTask& task) { return fmt::format("prelu {}", model::name_of(task.pass)); }
std::string family_of(const model::ProductTask&) { return "product"; }
std::string family_of(const model::ProductSumsTask&) { return "product_sums"; }
std::string family_of(const model::RemapTask&) { return "remap"; }
std::string family_of(const model::PeaksTask& task) { return fmt::format("peaks {}", model::name_of(task.pass)); }
std::string family_of(const model::HighestPeakTask&) { return "highest_peak"; }
std::string family_of(const model::SoftmaxTask& task) { return fmt::format("softmax {}", model::name_of(task.pass)); }
std::string family_of(const model::CopyTask& task) {
  const bool dense = tensor::is_dense(task.src) && tensor::is_dense(task.dst);
  return fmt::format("copy {}", dense ? "dense" : "strided");
}
std::string family_of(const model::CopyPiecesTask& task) {
  return task.accumulate ? "copy_pieces accumulate" : "copy_pieces";
}
std::string family_of(const model::FillTask&) { return "fill"; }
std::string family_of(const model::AddTask&) { return "add"; }
std::string family_of(const model::DropoutTask&) { return "dropout"; }
std::string family_of(const model::BiasGradientTask&) { return "bias_gradient"; }
std::string family_of(const model::LossSumsTask& task) {
  return fmt::format("loss_sums {}", model::name_of(task.loss.terms.front().kind));
}
std::string family_of(const model::LossTask& task) {
  return fmt::format("loss {}", model::name_of(task.loss.terms.front().kind));
}
std::string family_of(const model::UpdateTask& task) {
  constexpr std::array names{"sgd", "adam", "adamw"};
  return fmt::format("update {}", names.at(static_cast<std::size_t>(task.optimizer.kind)));
}

/// Samples, channels of both sides, and cells of dst.
std::vector<double> extents(const Layout& src, const Layout& dst) {
  std::vector<double> result;
  for (const std::int64_t extent :
       {dst.extents.n, src.extents.c, dst.extents.c, dst.extents.d, dst.extents.h, dst.extents.w})
    result.push_back(static_cast<double>(std::max<std::int64_t>(1, extent)));
  return result;
}

std::vector<double> extents_of(const model::ConvTask& task) { return extents(task.src, task.dst); }
std::vector<double> extents_of(const model::PrepareWeightsTask& task) { return extents_of(task.conv); }
std::vector<double> extents_of(const model::DenseTask& task) { return extents(task.src, task.dst); }
std::vector<double> extents_of(const model::PoolTask& task) { return extents(task.src, task.dst); }
std::vector<double> extents_of(const model::NormSumsTask& task) { return extents(task.x, task.x); }
std::vector<double> extents_of(const model::NormTask& task) { return extents(task.x, task.x); }
std::vector<double> extents_of(const model::ActivationTask& task) { return extents(task.src, task.dst); }
std::vector<double> extents_of(const model::PixelNormTask& task) { return extents(task.x, task.x); }
std::vector<double> extents_of(const model::PReluTask& task) { return extents(task.src, task.dst); }
std::vector<double> extents_of(const model::ProductTask& task) { return extents(task.b, task.dst); }
std::vector<double> extents_of(const model::ProductSumsTask& task) { return extents(task.dst, task.a); }
std::vector<double> extents_of(const model::RemapTask& task) { return extents(task.src, task.dst); }
std::vector<double> extents_of(const model::PeaksTask& task) { return extents(task.dst, task.src); }
std::vector<double> extents_of(const model::HighestPeakTask& task) { return extents(task.dst, task.src); }
std::vector<double> extents_of(const model::SoftmaxTask& task) { return extents(task.src, task.dst); }
std::vector<double> extents_of(const model::CopyTask& task) { return extents(task.src, task.dst); }
std::vector<double> extents_of(const model::CopyPiecesTask& task) {
  std::vector<double> result(6, 1.0);
  result[0] = static_cast<double>(std::max<std::size_t>(1, task.pieces.size()));
  double items = 0;
  for (const auto& piece : task.pieces) items += static_cast<double>(tensor::volume(piece.src.extents));
  result[5] = std::max(1.0, items);
  return result;
}
std::vector<double> extents_of(const model::FillTask& task) { return extents(task.dst, task.dst); }
std::vector<double> extents_of(const model::AddTask& task) { return extents(task.a, task.dst); }
std::vector<double> extents_of(const model::DropoutTask& task) { return extents(task.src, task.dst); }
std::vector<double> extents_of(const model::BiasGradientTask& task) { return extents(task.dst, task.dst); }
std::vector<double> extents_of(const model::LossSumsTask& task) { return extents(task.output, task.output); }
std::vector<double> extents_of(const model::LossTask& task) { return extents(task.output, task.output); }
std::vector<double> extents_of(const model::UpdateTask& task) {
  return {1, 1.0 + task.arrived, 1.0 + task.kept, 1, 1, static_cast<double>(std::max<std::int64_t>(1, task.count))};
}

}  // namespace

std::string task_key(const model::Task& task) {
  const std::string signature = model::signature(task).text;
  const auto* conv = std::get_if<model::ConvTask>(&task);
  return conv ? fmt::format("{} {}", model::name_of(conv->algorithm), signature) : signature;
}

Features features_of(const model::Task& task) {
  return std::visit(
      [&](const auto& one) {
        return Features{.family = family_of(one),
                        .flops = static_cast<double>(model::flops(task)),
                        .bytes = static_cast<double>(model::bytes_moved(task)),
                        .extents = extents_of(one)};
      },
      task);
}

}  // namespace orthant::oracle
