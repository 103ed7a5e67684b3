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
  std::int64_t operator()(const ActivationTask&) const { return 0; }
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

int state_count(const Optimizer& optimizer) {
  if (optimizer.kind != OptimizerKind::sgd) return 2;
  return optimizer.momentum != 0 ? 1 : 0;
}

}  // namespace orthant::model
