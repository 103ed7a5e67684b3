#include "orthant/train/sample_values.hpp"

#include <algorithm>

namespace orthant::train {
namespace {

std::size_t items(std::int64_t samples, std::int64_t numbers) { return static_cast<std::size_t>(samples * numbers); }

/// Collective. One rank has each number, the others have zeros, so that sums are exact in any order.
void add_up(comm::Comm& comm, std::vector<double>& numbers) {
  comm.all_reduce(numbers, comm::Reduction::sum);
  // A single rank adds nothing, and would keep a negative zero.
  for (double& number : numbers) number += 0.0;
}

}  // namespace

bool has_sample_values(const model::Graph& graph) {
  const tensor::Shape& shape = graph.nodes.back().shape;
  return tensor::pixels(shape) == shape.n;
}

SampleValues::SampleValues(const model::Graph& graph, std::int64_t samples)
    : samples_(samples),
      labels_(model::takes_labels(graph.loss)),
      predicted_(items(samples, graph.nodes.back().shape.c)),
      actual_(items(samples, labels_ ? 1 : graph.nodes.back().shape.c)) {}

void SampleValues::add(engine::Engine& engine, const EvaluatedBatch& batch) {
  const schedule::Schedule& schedule = engine.schedule();
  for (std::size_t i = 0; i < schedule.predictions.size(); ++i) {
    const schedule::Port& port = schedule.predictions[i];
    if (port.buffer < 0) continue;
    const std::int64_t end = std::min({port.box.hi.n, batch.samples, samples_ - batch.first});
    const std::int64_t count = end - port.box.lo.n;
    if (count <= 0) continue;
    const std::int64_t first = batch.first + port.box.lo.n;
    const std::int64_t channels = port.box.hi.c;
    const int target = schedule.targets[i].buffer;
    const auto predictions = engine.floats(port.buffer).subspan(static_cast<std::size_t>(port.layout.offset));
    std::copy_n(predictions.begin(), items(count, channels),
                predicted_.begin() + static_cast<std::ptrdiff_t>(items(first, channels)));
    if (labels_) {
      std::copy_n(engine.labels(target).begin(), items(count, 1), actual_.begin() + first);
    } else {
      std::copy_n(engine.floats(target).begin(), items(count, channels),
                  actual_.begin() + static_cast<std::ptrdiff_t>(items(first, channels)));
    }
  }
}

void SampleValues::share(comm::Comm& comm) {
  if (samples_ == 0) return;
  add_up(comm, predicted_);
  add_up(comm, actual_);
}

std::span<const double> SampleValues::row(const std::vector<double>& rows, std::int64_t sample) const {
  const std::size_t count = rows.size() / static_cast<std::size_t>(samples_);
  return std::span(rows).subspan(static_cast<std::size_t>(sample) * count, count);
}

}  // namespace orthant::train
