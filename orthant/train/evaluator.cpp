#include "orthant/train/evaluator.hpp"

#include "orthant/train/open_data.hpp"
#include "orthant/train/slots.hpp"

#include <algorithm>

namespace orthant::train {
namespace {

engine::SessionOptions session_options(const EvaluatorOptions& options) {
  engine::SessionOptions result{
      .threads = options.threads, .kernels = options.kernels, .other_bytes = options.other_bytes};
  result.lowering.mode = schedule::Mode::evaluate;
  result.lowering.update = false;
  result.lowering.keep_output = true;
  return result;
}

}  // namespace

Evaluator::Evaluator(const model::Graph& graph, const plan::Plan& plan, comm::Comm& comm,
                     const EvaluatorOptions& options)
    : session_(graph, plan, comm, session_options(options)) {}

void Evaluator::copy_weights(const engine::Engine& from) {
  const auto& theirs = from.schedule().parameters;
  const auto& mine = engine().schedule().parameters;
  std::vector<float> values;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].value < 0) continue;
    values.resize(from.item_count(theirs[i].value));
    from.read(theirs[i].value, values);
    engine().write(mine[i].value, values);
  }
}

void Evaluator::load(const data::sets::Dataset& dataset, const EvaluatedBatch& batch) {
  const data::sets::SampleShape shape = sample_shape(session_.graph());
  for (const Slot& slot : slots_of(session_.schedule())) {
    const std::int64_t sample = batch.first + std::min(slot.n, batch.samples - 1);
    fill_slot(slot, {.dataset = dataset, .shape = shape, .sample = sample, .box = slot.box}, room_, engine());
  }
}

void Evaluator::run(const data::sets::Dataset& dataset, const std::function<void(const EvaluatedBatch&)>& visit) {
  const std::int64_t mini_batch = session_.graph().nodes.front().shape.n;
  for (std::int64_t first = 0; first < dataset.samples(); first += mini_batch) {
    const EvaluatedBatch batch{.first = first, .samples = std::min(mini_batch, dataset.samples() - first)};
    load(dataset, batch);
    engine().run({.step = 1, .seed = 0, .learning_rate = 0});
    visit(batch);
  }
}

Scores Evaluator::score(const data::sets::Dataset& dataset) {
  ScoreSums sums(session_.graph());
  run(dataset, [&](const EvaluatedBatch& batch) { sums.add(engine(), batch); });
  return sums.total(session_.comm());
}

}  // namespace orthant::train
