#include "orthant/kernels/loss/loss.hpp"

#include "orthant/kernels/factories.hpp"

namespace orthant::kernels::loss {

double weight_of(const model::Loss& loss, model::LossKind kind) {
  double weight = 0;
  for (const model::LossTerm& term : loss.terms) weight += term.kind == kind ? term.weight : 0;
  return weight;
}

void write_losses(const model::Loss& loss, const double* by_kind, double* losses) {
  double sum = 0;
  for (const model::LossTerm& term : loss.terms) {
    *losses = by_kind[static_cast<int>(term.kind)];
    sum += term.weight * *losses++;
  }
  *losses = sum;
}

std::unique_ptr<Primitive> make_loss_sums(const model::LossSumsTask& task, int threads) {
  return model::takes_labels(task.loss) ? make_label_loss_sums(task, threads) : make_value_loss_sums(task, threads);
}

std::unique_ptr<Primitive> make_loss(const model::LossTask& task, int threads) {
  return model::takes_labels(task.loss) ? make_label_loss(task, threads) : make_value_loss(task, threads);
}

}  // namespace orthant::kernels::loss
