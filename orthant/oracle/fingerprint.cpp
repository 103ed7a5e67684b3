#include "orthant/base/random.hpp"
#include "orthant/oracle/prices.hpp"

#include <variant>

namespace orthant::oracle {
namespace {

using tensor::Layout;

/// Mixes what a task's speed depends on, as model::signature() writes it down.
class Mark {
 public:
  void add(std::int64_t value) { mark_ = base::keyed(mark_, static_cast<std::uint64_t>(value)); }
  void add(const tensor::Shape& shape) {
    for (const std::int64_t extent : {shape.n, shape.c, shape.d, shape.h, shape.w}) add(extent);
  }
  void add(const tensor::Extent3& extent) {
    for (const std::int64_t one : {extent.d, extent.h, extent.w}) add(one);
  }
  void add(const Layout& layout) {
    add(layout.extents);
    const bool dense = tensor::is_dense(layout);
    add(static_cast<std::int64_t>(dense));
    if (!dense) add(layout.strides);
  }
  void add(const tensor::Window& window) {
    for (const tensor::Extent3* one : {&window.size, &window.stride, &window.dilation, &window.pad_lo}) add(*one);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void add(Enum value) { add(static_cast<std::int64_t>(value)); }
  template <class... Values>
  void add_all(const Values&... values) {
    (add(values), ...);
  }
  void add(bool flag) { add(static_cast<std::int64_t>(flag)); }

  void add(const model::ConvTask& task) {
    add_all(task.pass, task.window, task.groups, task.bias, task.activation.kind, task.accumulate, task.src, task.dst,
            task.algorithm, task.prepared_bytes > 0);
  }
  void add(const model::PrepareWeightsTask& task) { add(task.conv); }
  void add(const model::DenseTask& task) {
    add_all(task.pass, task.bias, task.activation.kind, task.accumulate, task.src, task.dst);
  }
  void add(const model::PoolTask& task) {
    add_all(task.pass, task.kind, task.window, task.count_include_pad, task.activation.kind, task.accumulate, task.src,
            task.dst);
  }
  void add(const model::SampleGroups& groups) { add_all(groups.groups, groups.channels, groups.first); }
  void add(const model::NormSumsTask& task) {
    add_all(task.pass, task.groups, task.activation.kind, task.accumulate, task.x, task.y, task.diff_y, task.diff_y2,
            task.diff_residual);
  }
  void add(const model::NormTask& task) {
    add_all(task.pass, task.groups, task.activation.kind, task.training, task.residual, task.x, task.y, task.diff_y,
            task.diff_y2, task.diff_x, task.residual_layout);
  }
  void add(const model::ActivationTask& task) {
    add_all(task.pass, task.activation.kind, task.src, task.dst, task.second, task.y);
  }
  void add(const model::PixelNormTask& task) {
    add_all(task.pass, task.affine, task.accumulate, task.x, task.y, task.diff_x);
  }
  void add(const model::PReluTask& task) {
    add_all(task.pass, task.shared, task.accumulate, task.src, task.dst, task.diff_src);
  }
  void add(const model::ProductTask& task) { add_all(task.a, task.b, task.dst); }
  void add(const model::ProductSumsTask& task) { add_all(task.accumulate, task.a, task.b, task.dst); }
  void add(const model::RemapTask& task) {
    for (const model::RemapTask::Axis& axis : task.axes) add(static_cast<std::int64_t>(axis.cell.size()));
    add_all(task.src, task.dst);
  }
  void add(const model::PeaksTask& task) { add_all(task.pass, task.src, task.dst, task.diff_dst); }
  void add(const model::HighestPeakTask& task) { add_all(task.pass, task.src, task.dst, task.diff_src); }
  void add(const model::SoftmaxTask& task) { add_all(task.pass, task.src, task.dst, task.diff_dst); }
  void add(const model::CopyTask& task) {
    add_all(task.factor != 1 || task.offset != 0, task.accumulate, task.src, task.dst);
  }
  void add(const model::CopyPiecesTask& task) {
    add(task.accumulate);
    for (const model::CopyPiecesTask::Piece& piece : task.pieces) add_all(piece.src, piece.dst);
  }
  void add(const model::FillTask& task) { add(task.dst); }
  void add(const model::AddTask& task) { add_all(task.a, task.b, task.dst); }
  void add(const model::DropoutTask& task) { add_all(task.src, task.dst); }
  void add(const model::BiasGradientTask& task) { add_all(task.accumulate, task.dst); }
  void add(const model::Loss& loss) {
    for (const model::LossTerm& term : loss.terms) add(term.kind);
  }
  void add(const model::LossSumsTask& task) { add_all(task.loss, task.output); }
  void add(const model::LossTask& task) { add_all(task.loss, task.output); }
  void add(const model::UpdateTask& task) {
    const model::Optimizer& optimizer = task.optimizer;
    add_all(optimizer.kind, task.count, static_cast<std::int64_t>(task.arrived), static_cast<std::int64_t>(task.kept),
            optimizer.momentum != 0, optimizer.nesterov, optimizer.weight_decay != 0);
  }

  [[nodiscard]] std::uint64_t value() const { return mark_; }

 private:
  std::uint64_t mark_ = 0;
};

}  // namespace

std::uint64_t fingerprint(const model::Task& task) {
  Mark mark;
  mark.add(static_cast<std::int64_t>(task.index()));
  std::visit([&](const auto& one) { mark.add(one); }, task);
  return mark.value();
}

}  // namespace orthant::oracle
