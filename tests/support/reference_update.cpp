#include "tests/support/definitions.hpp"

#include <cmath>

namespace orthant::test {
namespace {

using model::Optimizer;

/// torch.optim.SGD: the momentum buffer starts as the first gradient, which is what zeros give.
void sgd(const Optimizer& optimizer, double rate, double& weight, double gradient, double* momentum) {
  gradient += optimizer.weight_decay * weight;
  if (momentum) {
    *momentum = optimizer.momentum * *momentum + gradient;
    gradient = optimizer.nesterov ? gradient + optimizer.momentum * *momentum : *momentum;
  }
  weight -= rate * gradient;
}

/// torch.optim.Adam; AdamW decays the weight itself instead of adding to the gradient.
void adam(const Optimizer& optimizer, const kernels::Context& context, double& weight, double gradient, double& first,
          double& second) {
  if (optimizer.kind == model::OptimizerKind::adamw) {
    weight *= 1 - context.learning_rate * optimizer.weight_decay;
  } else {
    gradient += optimizer.weight_decay * weight;
  }
  const auto step = static_cast<double>(context.step);
  first = optimizer.beta1 * first + (1 - optimizer.beta1) * gradient;
  second = optimizer.beta2 * second + (1 - optimizer.beta2) * gradient * gradient;
  const double mean = first / (1 - std::pow(optimizer.beta1, step));
  const double square = second / (1 - std::pow(optimizer.beta2, step));
  weight -= context.learning_rate * mean / (std::sqrt(square) + optimizer.epsilon);
}

}  // namespace

void define(const model::UpdateTask& task, const kernels::Context& context, const Before& before, Arguments now) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(task.count); ++i) {
    double& weight = now[0]->at(i);
    double gradient = before[1].at(i);
    for (int part = 0; part < task.arrived; ++part)
      gradient += before[4].at(static_cast<std::size_t>(part * task.count) + i);
    for (int part = 0; part < task.kept; ++part) gradient += before[static_cast<std::size_t>(5 + part)].at(i);
    if (task.optimizer.kind == model::OptimizerKind::sgd) {
      sgd(task.optimizer, context.learning_rate, weight, gradient, now[2] ? &now[2]->at(i) : nullptr);
    } else {
      adam(task.optimizer, context, weight, gradient, now[2]->at(i), now[3]->at(i));
    }
  }
}

}  // namespace orthant::test
