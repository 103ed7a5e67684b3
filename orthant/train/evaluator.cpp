#include "orthant/train/evaluator.hpp"

#include "orthant/data/sets/orientation.hpp"

#include <algorithm>

namespace orthant::train {
namespace {

/// Calls read(sample, box, first item, layout) for each sample of a port: `box` is of the sample, the layout of its
/// place in the buffer.
template <class Read>
void for_each_sample(const schedule::Port& port, const EvaluatedBatch& batch, Read read) {
  if (port.buffer < 0) return;
  for (std::int64_t n = port.box.lo.n; n < port.box.hi.n; ++n) {
    tensor::Box box = port.box;
    box.set(tensor::Dim::n, {0, 1});
    tensor::Layout layout = port.layout;
    layout.extents.n = 1;
    layout.offset += (n - port.box.lo.n) * port.layout.strides.n;
    read(batch.first + std::min(n, batch.samples - 1), box, layout);
  }
}

template <class T>
std::span<T> dense_part(std::span<T> buffer, const tensor::Layout& layout) {
  return buffer.subspan(static_cast<std::size_t>(layout.offset),
                        static_cast<std::size_t>(tensor::volume(layout.extents)));
}

}  // namespace

Evaluator::Evaluator(const model::Graph& graph, const plan::Plan& plan, comm::Comm& comm,
                     const EvaluatorOptions& options)
    : session_(graph, plan, comm,
               {.lowering = {.mode = schedule::Mode::evaluate, .optimizer = {}, .update = false, .keep_output = true},
                .threads = options.threads,
                .kernels = options.kernels,
                .other_bytes = options.other_bytes}) {}

void Evaluator::copy_weights(const engine::Engine& from) {
  const auto& theirs = from.schedule().parameters;
  const auto& mine = engine().schedule().parameters;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].value < 0) continue;
    values_.resize(from.item_count(theirs[i].value));
    from.read(theirs[i].value, values_);
    engine().write(mine[i].value, values_);
  }
}

void Evaluator::load(const data::sets::Dataset& dataset, const EvaluatedBatch& batch) {
  const schedule::Schedule& schedule = engine().schedule();
  for (const schedule::Port& port : schedule.inputs) {
    for_each_sample(port, batch, [&](std::int64_t sample, const tensor::Box& box, const tensor::Layout& layout) {
      const std::span<float> buffer = engine().floats(port.buffer);
      if (tensor::is_dense(layout)) return dataset.read_input(sample, box, dense_part(buffer, layout));
      values_.resize(static_cast<std::size_t>(tensor::volume(box)));
      dataset.read_input(sample, box, values_);
      data::sets::turn<float>({}, values_, layout, buffer);
    });
  }
  // Targets are dense.
  for (const schedule::Port& port : schedule.targets) {
    for_each_sample(port, batch, [&](std::int64_t sample, const tensor::Box& box, const tensor::Layout& layout) {
      if (schedule.labels) return dataset.read_labels(sample, box, dense_part(engine().labels(port.buffer), layout));
      dataset.read_values(sample, box, dense_part(engine().floats(port.buffer), layout));
    });
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
