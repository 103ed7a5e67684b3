#include "orthant/kernels/elementwise/update.hpp"

#include "orthant/base/error.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/elementwise/update.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::elementwise::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

/// Lanes of the whole gradient from `item` on.
template <class D>
HWY_INLINE hn::Vec<D> load_gradient(D d, const GradientParts& gradient, std::int64_t item) {
  prefetch_ahead(gradient.own + item);
  auto sum = hn::LoadU(d, gradient.own + item);
  const auto add = [&](const float* items) HWY_ATTR {
    prefetch_ahead(items + item);
    sum = hn::Add(sum, hn::LoadU(d, items + item));
  };
  for (const float* part = gradient.arrived; part != gradient.end_of_arrived; part += gradient.stride) add(part);
  for (const void* part : gradient.kept) add(static_cast<const float*>(part));
  return sum;
}

/// Sums 0 * x over what is written, lane by lane: 0 as long as all x are finite, else nan.
class FiniteSums {
 public:
  template <class D>
  HWY_INLINE void add(D d, hn::Vec<D> items) {
    hn::StoreU(hn::MulAdd(hn::Zero(d), items, hn::LoadU(d, sums_)), d, sums_);
  }
  [[nodiscard]] bool all_finite() const {
    return std::all_of(std::begin(sums_), std::end(sums_), [](float sum) { return sum == 0; });
  }

 private:
  float sums_[hn::MaxLanes(hn::ScalableTag<float>())] = {};
};

/// False if a new weight is not finite.
bool sgd_items(const SgdStep& args, std::int64_t begin, std::int64_t count) {
  FiniteSums sums;
  const SgdStep step = args;  // a copy that no store can change stays in registers
  float* weights = step.weights + begin;
  float* momentum = step.momentum ? step.momentum + begin : nullptr;
  for_lanes(count, [&](auto d, std::int64_t i) HWY_ATTR {
    prefetch_ahead(weights + i);
    const auto weight = hn::LoadU(d, weights + i);
    auto g = hn::MulAdd(hn::Set(d, step.decay), weight, load_gradient(d, step.gradient, begin + i));
    if (momentum) {
      prefetch_ahead(momentum + i);
      const auto factor = hn::Set(d, step.momentum_factor);
      const auto moved = hn::MulAdd(factor, hn::LoadU(d, momentum + i), g);
      hn::StoreU(moved, d, momentum + i);
      g = step.nesterov ? hn::MulAdd(factor, moved, g) : moved;
    }
    const auto updated = hn::NegMulAdd(hn::Set(d, step.rate), g, weight);
    hn::StoreU(updated, d, weights + i);
    sums.add(d, updated);
  });
  return sums.all_finite();
}

/// False if a new weight or square is not finite.
bool adam_items(const AdamStep& args, std::int64_t begin, std::int64_t count) {
  FiniteSums sums;
  const AdamStep step = args;
  float* weights = step.weights + begin;
  float* first = step.first + begin;
  float* second = step.second + begin;
  for_lanes(count, [&](auto d, std::int64_t i) HWY_ATTR {
    for (const float* item : {weights, first, second}) prefetch_ahead(item + i);
    auto weight = hn::LoadU(d, weights + i);
    const auto g = hn::MulAdd(hn::Set(d, step.decay), weight, load_gradient(d, step.gradient, begin + i));
    weight = hn::Mul(weight, hn::Set(d, step.keep));
    const auto mean =
        hn::MulAdd(hn::Set(d, step.one_minus_beta1), g, hn::Mul(hn::Set(d, step.beta1), hn::LoadU(d, first + i)));
    const auto square = hn::MulAdd(hn::Mul(hn::Set(d, step.one_minus_beta2), g), g,
                                   hn::Mul(hn::Set(d, step.beta2), hn::LoadU(d, second + i)));
    hn::StoreU(mean, d, first + i);
    hn::StoreU(square, d, second + i);
    const auto root = hn::MulAdd(hn::Sqrt(square), hn::Set(d, step.root_factor), hn::Set(d, step.epsilon));
    const auto quotient = hn::Div(mean, root);
    const auto updated = hn::NegMulAdd(hn::Set(d, step.step_size), quotient, weight);
    hn::StoreU(updated, d, weights + i);
    sums.add(d, updated);
    sums.add(d, square);
  });
  return sums.all_finite();
}

}  // namespace
}  // namespace orthant::kernels::elementwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::elementwise {
namespace {

HWY_EXPORT(sgd_items);
HWY_EXPORT(adam_items);

using model::OptimizerKind;

class Update final : public Primitive {
 public:
  Update(const model::UpdateTask& task, int threads)
      : optimizer_(task.optimizer),
        count_(task.count),
        arrived_items_(task.arrived * task.count),
        team_(team_for(task.count, threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:update:" + simd_target(); }

  void execute(const Context& context, std::span<void* const> arguments, void*) override {
    const bool is_sgd = optimizer_.kind == OptimizerKind::sgd;
    const SgdStep sgd = is_sgd ? sgd_step(context, arguments) : SgdStep{};
    const AdamStep adam = is_sgd ? AdamStep{} : adam_step(context, arguments);
    run_team(team_, [&](int thread, int team) {
      const std::int64_t begin = boundary(thread, team), count = boundary(thread + 1, team) - begin;
      const bool finite = is_sgd ? HWY_DYNAMIC_DISPATCH(sgd_items)(sgd, begin, count)
                                 : HWY_DYNAMIC_DISPATCH(adam_items)(adam, begin, count);
      if (!finite && context.non_finite != nullptr) context.non_finite->store(true, std::memory_order_relaxed);
    });
  }

 private:
  /// Whole cache lines per thread.
  [[nodiscard]] std::int64_t boundary(int thread, int team) const {
    constexpr std::int64_t line = 16;
    return std::min(count_, share((count_ + line - 1) / line, thread, team) * line);
  }

  [[nodiscard]] GradientParts gradient_parts(std::span<void* const> arguments) const {
    const auto* arrived = static_cast<const float*>(arguments[at::update::arrived]);
    return {.own = static_cast<const float*>(arguments[at::update::gradient]),
            .arrived = arrived,
            .end_of_arrived = arrived_items_ > 0 ? arrived + arrived_items_ : arrived,
            .stride = count_,
            .kept = arguments.subspan(at::update::kept)};
  }

  [[nodiscard]] SgdStep sgd_step(const Context& context, std::span<void* const> arguments) const {
    return {.rate = static_cast<float>(context.learning_rate),
            .decay = static_cast<float>(optimizer_.weight_decay),
            .momentum_factor = static_cast<float>(optimizer_.momentum),
            .nesterov = optimizer_.nesterov,
            .weights = static_cast<float*>(arguments[at::update::weights]),
            .gradient = gradient_parts(arguments),
            .momentum = optimizer_.momentum != 0 ? static_cast<float*>(arguments[at::update::state0]) : nullptr};
  }

  [[nodiscard]] AdamStep adam_step(const Context& context, std::span<void* const> arguments) const {
    const bool decoupled = optimizer_.kind == OptimizerKind::adamw;
    const auto step = static_cast<double>(context.step);
    return {.keep = static_cast<float>(decoupled ? 1 - context.learning_rate * optimizer_.weight_decay : 1),
            .decay = static_cast<float>(decoupled ? 0 : optimizer_.weight_decay),
            .beta1 = static_cast<float>(optimizer_.beta1),
            .beta2 = static_cast<float>(optimizer_.beta2),
            .one_minus_beta1 = static_cast<float>(1 - optimizer_.beta1),
            .one_minus_beta2 = static_cast<float>(1 - optimizer_.beta2),
            .step_size = static_cast<float>(context.learning_rate / (1 - std::pow(optimizer_.beta1, step))),
            .root_factor = static_cast<float>(1 / std::sqrt(1 - std::pow(optimizer_.beta2, step))),
            .epsilon = static_cast<float>(optimizer_.epsilon),
            .weights = static_cast<float*>(arguments[at::update::weights]),
            .gradient = gradient_parts(arguments),
            .first = static_cast<float*>(arguments[at::update::state0]),
            .second = static_cast<float*>(arguments[at::update::state1])};
  }

  model::Optimizer optimizer_;
  std::int64_t count_, arrived_items_;
  int team_;
};

}  // namespace

std::unique_ptr<Primitive> make_update(const model::UpdateTask& task, int threads) {
  return std::make_unique<Update>(task, threads);
}

}  // namespace orthant::kernels::elementwise
#endif
