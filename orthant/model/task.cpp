#include "orthant/model/task.hpp"

#include "orthant/base/checked.hpp"

namespace orthant::model {
namespace {

using base::checked_product;

struct Flops {
  std::int64_t operator()(const ConvTask& task) const {
    const tensor::Shape& dst = task.dst.extents;
    return checked_product(
        {2, tensor::pixels(dst), dst.c, tensor::taps(task.window), task.src.extents.c / task.groups});
  }
  std::int64_t operator()(const DenseTask& task) const {
    return checked_product({2, task.dst.extents.n, task.dst.extents.c, task.src.extents.c});
  }
  // Bound by memory, not by arithmetic.
  std::int64_t operator()(const PrepareWeightsTask&) const { return 0; }
  std::int64_t operator()(const PoolTask&) const { return 0; }
  std::int64_t operator()(const NormSumsTask&) const { return 0; }
  std::int64_t operator()(const NormTask&) const { return 0; }
  std::int64_t operator()(const PixelNormTask&) const { return 0; }
  std::int64_t operator()(const ActivationTask&) const { return 0; }
  std::int64_t operator()(const PReluTask&) const { return 0; }
  std::int64_t operator()(const ProductTask&) const { return 0; }
  std::int64_t operator()(const ProductSumsTask&) const { return 0; }
  std::int64_t operator()(const RemapTask&) const { return 0; }
  std::int64_t operator()(const PeaksTask&) const { return 0; }
  std::int64_t operator()(const HighestPeakTask&) const { return 0; }
  std::int64_t operator()(const SoftmaxTask&) const { return 0; }
  std::int64_t operator()(const CopyTask&) const { return 0; }
  std::int64_t operator()(const CopyPiecesTask&) const { return 0; }
  std::int64_t operator()(const FillTask&) const { return 0; }
  std::int64_t operator()(const AddTask&) const { return 0; }
  std::int64_t operator()(const DropoutTask&) const { return 0; }
  std::int64_t operator()(const BiasGradientTask&) const { return 0; }
  std::int64_t operator()(const LossSumsTask&) const { return 0; }
  std::int64_t operator()(const LossTask&) const { return 0; }
  std::int64_t operator()(const UpdateTask&) const { return 0; }
};

}  // namespace

const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::forward: return "forward";
    case Pass::backward_data: return "backward_data";
    case Pass::backward_weights: return "backward_weights";
  }
  return "";
}

const char* name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::automatic: return "automatic";
    case Algorithm::winograd: return "winograd";
    case Algorithm::matrix: return "matrix";
    case Algorithm::onednn: return "onednn";
    case Algorithm::direct: return "direct";
  }
  return "";
}

std::optional<Algorithm> algorithm_named(const std::string& name) {
  for (const Algorithm algorithm : named_algorithms) {
    if (name == name_of(algorithm)) return algorithm;
  }
  return std::nullopt;
}

std::int64_t flops(const Task& task) { return std::visit(Flops{}, task); }

std::int64_t argmax_bytes(const tensor::Window& window) {
  const std::int64_t count = tensor::taps(window);
  if (count <= 256) return 1;
  if (count <= 65536) return 2;
  base::fail(base::Exit::bad_data, "a max_pool window of {} taps is not supported; at most 65536 are", count);
}

std::int64_t loss_sum_count(const Loss& loss, std::int64_t classes) {
  std::int64_t count = 0;
  for (const LossTerm& term : loss.terms) count += term.kind == LossKind::soft_dice ? 3 * classes : 1;
  return count;
}

RemapTask::Axis axis_of(const tensor::AxisRule& rule, tensor::Range dst_cells, tensor::Range src_cells,
                        std::int64_t src, std::int64_t dst) {
  RemapTask::Axis axis;
  const auto add = [&](std::int64_t cell, float weight) {
    axis.cell.push_back(static_cast<std::int32_t>(cell - src_cells.lo));
    axis.weight.push_back(weight);
  };
  for (std::int64_t i = dst_cells.lo; i < dst_cells.hi; ++i) {
    const tensor::AxisTap tap = tensor::tap_of(rule, i, src, dst);
    if (tap.lo >= 0) {
      const bool two = tap.weight != 0 && tap.hi != tap.lo;
      add(tap.lo, two ? 1 - tap.weight : 1);
      if (two) add(tap.hi, tap.weight);
    }
    axis.begin.push_back(static_cast<std::int32_t>(axis.cell.size()));
  }
  return axis;
}

RemapTask::Axis adjoint(const RemapTask::Axis& axis, std::int64_t src_cells) {
  RemapTask::Axis back;
  back.begin.assign(static_cast<std::size_t>(src_cells) + 1, 0);
  for (const std::int32_t cell : axis.cell) ++back.begin[static_cast<std::size_t>(cell) + 1];
  for (std::size_t i = 1; i < back.begin.size(); ++i) back.begin[i] += back.begin[i - 1];
  back.cell.resize(axis.cell.size());
  back.weight.resize(axis.cell.size());
  std::vector<std::int32_t> next = back.begin;
  for (std::size_t i = 0; i + 1 < axis.begin.size(); ++i) {
    for (auto k = static_cast<std::size_t>(axis.begin[i]); k < static_cast<std::size_t>(axis.begin[i + 1]); ++k) {
      const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(axis.cell[k])]++);
      back.cell[at] = static_cast<std::int32_t>(i);
      back.weight[at] = axis.weight[k];
    }
  }
  return back;
}

int state_count(const Optimizer& optimizer) {
  if (optimizer.kind != OptimizerKind::sgd) return 2;
  return optimizer.momentum != 0 ? 1 : 0;
}

}  // namespace orthant::model
