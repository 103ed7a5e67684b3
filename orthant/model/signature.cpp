#include "orthant/model/signature.hpp"

#include "orthant/base/format.hpp"

#include <array>

namespace orthant::model {
namespace {

using tensor::Layout;

const char* name_of(OptimizerKind kind) {
  constexpr std::array names{"sgd", "adam", "adamw"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string text_of(const tensor::Shape& shape) {
  return fmt::format("{}x{}x{}x{}x{}", shape.n, shape.c, shape.d, shape.h, shape.w);
}

std::string text_of(const Layout& layout) {
  return tensor::is_dense(layout) ? text_of(layout.extents)
                                  : fmt::format("{} steps {}", text_of(layout.extents), text_of(layout.strides));
}

std::string text_of(const tensor::Extent3& extent) { return fmt::format("{}x{}x{}", extent.d, extent.h, extent.w); }

std::string text_of(const tensor::Window& window) {
  return fmt::format("window {} stride {} dilation {} pad {}", text_of(window.size), text_of(window.stride),
                     text_of(window.dilation), text_of(window.pad_lo));
}

/// " name", or nothing.
std::string flag(const char* name, bool is_set) { return is_set ? std::string(" ") + name : ""; }

/// " name extents", or nothing for a layout that is as another one.
std::string given(const char* name, const Layout& layout) {
  return tensor::is_given(layout) ? fmt::format(" {} {}", name, text_of(layout)) : "";
}

std::string text_of(const Loss& loss) {
  std::string text;
  for (const LossTerm& term : loss.terms) text += flag(model::name_of(term.kind), true);
  return text;
}

std::string text_of(const ConvTask& task) {
  return fmt::format("{} {} src {} dst {} {} groups {}{}{}", name_of(task.pass), model::name_of(task.activation.kind),
                     text_of(task.src), text_of(task.dst), text_of(task.window), task.groups, flag("bias", task.bias),
                     flag("accumulate", task.accumulate)) +
         flag("prepared", task.prepared_bytes > 0);
}

std::string text_of(const PrepareWeightsTask& task) {
  return fmt::format("prepare_weights {} {}", model::name_of(task.conv.algorithm), text_of(task.conv));
}

std::string text_of(const DenseTask& task) {
  return fmt::format("dense {} {} src {} dst {}{}{}", name_of(task.pass), model::name_of(task.activation.kind),
                     text_of(task.src), text_of(task.dst), flag("bias", task.bias),
                     flag("accumulate", task.accumulate));
}

std::string text_of(const PoolTask& task) {
  return fmt::format("pool {} {} {} src {} dst {} {}{}{}", name_of(task.pass),
                     task.kind == PoolKind::max ? "max" : "average", model::name_of(task.activation.kind),
                     text_of(task.src), text_of(task.dst), text_of(task.window),
                     flag("without_pad", !task.count_include_pad), flag("accumulate", task.accumulate));
}

std::string text_of(const SampleGroups& groups) {
  if (groups.groups == 0) return "";
  return fmt::format(" groups {} of {} from {}", groups.groups, groups.channels, groups.first);
}

std::string text_of(const NormSumsTask& task) {
  return fmt::format("norm_sums {} {} x {}{}{}{}{}{}{}", name_of(task.pass), model::name_of(task.activation.kind),
                     text_of(task.x), text_of(task.groups), given("y", task.y), given("diff_y", task.diff_y),
                     given("diff_y2", task.diff_y2), given("diff_residual", task.diff_residual),
                     flag("accumulate", task.accumulate));
}

std::string text_of(const NormTask& task) {
  return fmt::format("norm {} {} x {}{}{}{}{}{}{}{}{}", name_of(task.pass), model::name_of(task.activation.kind),
                     text_of(task.x), text_of(task.groups), given("y", task.y), given("diff_y", task.diff_y),
                     given("diff_y2", task.diff_y2), given("diff_x", task.diff_x), flag("residual", task.residual),
                     given("as", task.residual_layout), flag("training", task.training));
}

std::string text_of(const ActivationTask& task) {
  return fmt::format("activation {} {} src {} dst {}{}{}", name_of(task.pass), model::name_of(task.activation.kind),
                     text_of(task.src), text_of(task.dst), given("second", task.second), given("y", task.y));
}

std::string text_of(const PixelNormTask& task) {
  return fmt::format("pixel_norm {} x {} y {}{}{}{}", name_of(task.pass), text_of(task.x), text_of(task.y),
                     given("diff_x", task.diff_x), flag("affine", task.affine), flag("accumulate", task.accumulate));
}

std::string text_of(const PReluTask& task) {
  return fmt::format("prelu {} src {} dst {}{}{}{}", name_of(task.pass), text_of(task.src), text_of(task.dst),
                     given("diff_src", task.diff_src), flag("shared", task.shared),
                     flag("accumulate", task.accumulate));
}

std::string text_of(const ProductTask& task) {
  return fmt::format("product a {} b {} dst {}", text_of(task.a), text_of(task.b), text_of(task.dst));
}

std::string text_of(const ProductSumsTask& task) {
  return fmt::format("product_sums a {} b {} dst {}{}", text_of(task.a), text_of(task.b), text_of(task.dst),
                     flag("accumulate", task.accumulate));
}

std::string text_of(const RemapTask& task) {
  return fmt::format("remap {}x{}x{} terms src {} dst {}", task.axes[0].cell.size(), task.axes[1].cell.size(),
                     task.axes[2].cell.size(), text_of(task.src), text_of(task.dst));
}

std::string text_of(const PeaksTask& task) {
  return fmt::format("peaks {} src {} dst {}{}", name_of(task.pass), text_of(task.src), text_of(task.dst),
                     given("diff_dst", task.diff_dst));
}

std::string text_of(const HighestPeakTask& task) {
  return fmt::format("highest_peak {} src {} dst {}{}", name_of(task.pass), text_of(task.src), text_of(task.dst),
                     given("diff_src", task.diff_src));
}

std::string text_of(const SoftmaxTask& task) {
  return fmt::format("softmax {} src {} dst {}{}", name_of(task.pass), text_of(task.src), text_of(task.dst),
                     given("diff_dst", task.diff_dst));
}

std::string text_of(const CopyTask& task) {
  return fmt::format("copy src {} dst {}{}{}", text_of(task.src), text_of(task.dst),
                     flag("scaled", task.factor != 1 || task.offset != 0), flag("accumulate", task.accumulate));
}

std::string text_of(const CopyPiecesTask& task) {
  std::string text = "copy_pieces";
  for (const CopyPiecesTask::Piece& piece : task.pieces)
    text += fmt::format(" src {} dst {}", text_of(piece.src), text_of(piece.dst));
  return text + flag("accumulate", task.accumulate);
}

std::string text_of(const FillTask& task) { return fmt::format("fill dst {}", text_of(task.dst)); }

std::string text_of(const AddTask& task) {
  return fmt::format("add a {} b {} dst {}", text_of(task.a), text_of(task.b), text_of(task.dst));
}

std::string text_of(const DropoutTask& task) {
  return fmt::format("dropout src {} dst {}", text_of(task.src), text_of(task.dst));
}

std::string text_of(const BiasGradientTask& task) {
  return fmt::format("bias_gradient dst {}{}", text_of(task.dst), flag("accumulate", task.accumulate));
}

std::string text_of(const LossSumsTask& task) {
  return fmt::format("loss_sums{} output {}", text_of(task.loss), text_of(task.output));
}

std::string text_of(const LossTask& task) {
  return fmt::format("loss{} output {}", text_of(task.loss), text_of(task.output));
}

std::string text_of(const UpdateTask& task) {
  const Optimizer& optimizer = task.optimizer;
  const bool sgd = optimizer.kind == OptimizerKind::sgd;
  return fmt::format("update {} count {} arrived {} kept {}{}{}{}", name_of(optimizer.kind), task.count, task.arrived,
                     task.kept, flag("momentum", sgd && optimizer.momentum != 0),
                     flag("nesterov", sgd && optimizer.nesterov), flag("weight_decay", optimizer.weight_decay != 0));
}

}  // namespace

Signature signature(const Task& task) {
  return {std::visit([](const auto& one) { return text_of(one); }, task)};
}

}  // namespace orthant::model
