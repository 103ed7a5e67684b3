#include "orthant/kernels/conv.hpp"
#include "orthant/wrapper/core.hpp"

#include <array>
#include <utility>

namespace orthant::wrapper {
namespace {

using model::ConvTask;
using model::Pass;

/// Our order of weights, [groups][taps][I/groups][O/groups], of dims (g) o i (d) (h) w.
dnnl_memory_desc_t our_weights(const Problem& problem) {
  const int count = problem.weights.ndims;
  const bool grouped = count > problem.src.ndims;
  std::array<int, 6> order{};
  std::size_t at = 0;
  if (grouped) order[at++] = 0;
  const int first = grouped ? 1 : 0;
  for (int i = first + 2; i < count; ++i) order[at++] = i;
  order[at++] = first + 1;
  order[at] = first;
  return dense_memory(count, problem.weights.dims, order);
}

class OurCore final : public Core {
 public:
  /// `adding` is the same primitive for tasks that accumulate; null where none does.
  OurCore(const Layouts& layouts, const ConvTask& task, std::unique_ptr<kernels::Primitive> primitive,
          std::unique_ptr<kernels::Primitive> adding)
      : Core(layouts),
        kind_(model::name_of(task.algorithm)),
        pass_(task.pass),
        primitive_(std::move(primitive)),
        adding_(std::move(adding)) {}

  [[nodiscard]] std::string kind() const override { return kind_; }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return std::max(primitive_->scratch_bytes(), adding_ ? adding_->scratch_bytes() : 0);
  }
  [[nodiscard]] bool can_accumulate() const override { return adding_ != nullptr; }

  void run(const Tensors& tensors, void* scratch, bool accumulate) override {
    kernels::Primitive& primitive = accumulate ? *adding_ : *primitive_;
    const Tensors& t = tensors;
    switch (pass_) {
      case Pass::forward: return primitive.execute({}, std::array{t.src, t.weights, t.bias, t.dst}, scratch);
      case Pass::backward_data: return primitive.execute({}, std::array{t.dst, t.weights, t.src}, scratch);
      case Pass::backward_weights: break;
    }
    primitive.execute({}, std::array{t.src, t.dst, t.weights, t.bias}, scratch);
  }

 private:
  std::string kind_;
  Pass pass_;
  std::unique_ptr<kernels::Primitive> primitive_, adding_;
};

/// In channels-last layouts.
ConvTask task_of(const Problem& problem, const Core::Layouts& layouts) {
  return {.pass = problem.pass,
          .window = problem.window,
          .groups = problem.groups,
          .bias = problem.bias,
          .src = tensor::channels_last(shape_of(layouts.src)),
          .dst = tensor::channels_last(shape_of(layouts.dst))};
}

/// The same kernel for further pieces, or null.
std::unique_ptr<kernels::Primitive> adding(ConvTask task, int threads) {
  if (task.pass != Pass::backward_weights) return nullptr;
  task.accumulate = true;
  for (kernels::ConvCandidate& candidate : kernels::conv_candidates(task, threads, model::ErrorClass::fast)) {
    if (candidate.algorithm == task.algorithm) return std::move(candidate.primitive);
  }
  return nullptr;
}

}  // namespace

std::vector<std::unique_ptr<Core>> make_our_cores(const Problem& problem, const CoreOptions& options) {
  const Core::Layouts layouts{
      .src = channels_last(problem.src), .weights = our_weights(problem), .dst = channels_last(problem.dst)};
  const ConvTask any = task_of(problem, layouts);
  const model::ErrorClass most = options.fast ? model::ErrorClass::fast : model::ErrorClass::exact;
  std::vector<std::unique_ptr<Core>> cores;
  for (kernels::ConvCandidate& candidate : kernels::conv_candidates(any, options.threads, most)) {
    ConvTask task = any;
    task.algorithm = candidate.algorithm;
    cores.push_back(
        std::make_unique<OurCore>(layouts, task, std::move(candidate.primitive), adding(task, options.threads)));
  }
  return cores;
}

}  // namespace orthant::wrapper
