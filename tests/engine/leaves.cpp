#include "tests/engine/leaves.hpp"

#include "orthant/schedule/verify.hpp"
#include "tests/support/definitions.hpp"
#include "tests/support/random.hpp"

#include <cmath>

namespace orthant::test {

using schedule::Schedule;

Schedule lowered(const model::Graph& graph, const schedule::LowerOptions& options) {
  Schedule schedule = schedule::lower(graph, plan::serial_plan(graph), 0, options);
  schedule::check(schedule);
  return schedule;
}

void fill(Interpreter& interpreter, const model::Graph& graph) {
  const Schedule& schedule = interpreter.schedule();
  Random random(3);
  const auto classes = static_cast<int>(graph.nodes.back().shape.c);
  for (double& value : interpreter.buffer(schedule.inputs.front().buffer)) value = random.real(-1, 1);
  for (double& value : interpreter.buffer(schedule.targets.front().buffer)) {
    value = schedule.labels ? random.integer(0, classes - 1) : random.real(-1, 1);
  }
  for (const schedule::ParameterBuffers& parameter : schedule.parameters) {
    const bool positive = parameter.parameter.role == model::Parameter::Role::running_var ||
                          parameter.parameter.role == model::Parameter::Role::norm_weight;
    for (double& value : interpreter.buffer(parameter.value))
      value = positive ? random.real(0.5, 1.5) : random.real(-0.6, 0.6);
  }
  for (const schedule::Bucket& bucket : schedule.buckets) {
    for (const int state : bucket.state) {
      for (double& value : interpreter.buffer(state)) value = random.real(-0.1, 0.1);
    }
  }
}

std::vector<Leaf> leaves(const Schedule& schedule) {
  std::vector<Leaf> all;
  if (!schedule.input_gradients.empty()) {
    const schedule::Port& gradient = schedule.input_gradients.front();
    all.push_back({"input", schedule.inputs.front().buffer, gradient.buffer, gradient.layout});
  }
  for (const schedule::ParameterBuffers& entry : schedule.parameters) {
    if (entry.gradient >= 0) all.push_back({entry.parameter.name, entry.value, entry.gradient});
  }
  return all;
}

Numbers gradient_of(Interpreter& interpreter, const Leaf& leaf) {
  const Numbers& buffer = interpreter.buffer(leaf.gradient);
  if (!tensor::is_given(leaf.layout)) return buffer;
  const tensor::Layout dense = tensor::channels_last(leaf.layout.extents);
  Numbers gradient(static_cast<std::size_t>(tensor::volume(leaf.layout.extents)));
  for_each_item(leaf.layout.extents,
                [&](const tensor::Shape& i) { gradient.at(item(dense, i)) = buffer.at(item(leaf.layout, i)); });
  return gradient;
}

double gradient_floor(Interpreter& interpreter) {
  double squares = 0;
  for (const Leaf& leaf : leaves(interpreter.schedule())) {
    for (const double value : gradient_of(interpreter, leaf)) squares += value * value;
  }
  return 0.02 * std::sqrt(squares);
}

}  // namespace orthant::test
