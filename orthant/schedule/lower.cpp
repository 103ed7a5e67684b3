#include "orthant/base/checked.hpp"
#include "orthant/schedule/lowering.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using model::Parameter;
using tensor::Shape;

constexpr std::int64_t float_bytes = sizeof(float);

}  // namespace

Lowering::Lowering(const model::Graph& graph, const plan::Plan& plan, int rank, const LowerOptions& options)
    : graph_(graph),
      plan_(plan),
      rank_(rank),
      options_(options),
      units_(fuse(graph)),
      consumers_(consumer_counts(graph)) {
  const std::size_t count = graph.nodes.size();
  unit_of_.assign(count, -1);
  for (std::size_t i = 0; i < units_.size(); ++i)
    unit_of_[static_cast<std::size_t>(units_[i].out)] = static_cast<int>(i);
  values_.resize(count);
  extra_.assign(count, -1);
  gradients_.resize(count);
  activation_undone_.resize(count);
  mark_gradients();
}

Schedule Lowering::run() {
  declare_parameters();
  for (const Unit& unit : units_) forward(unit);
  loss();
  if (options_.mode == Mode::train) {
    phase_ = Phase::backward;
    for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit) backward(*unit);
    if (options_.update) update();
  }
  find_lifetimes();
  return std::move(schedule_);
}

Shape Lowering::local_shape(int index) const {
  return tensor::extents_of(tensor::owned_box(plan::distribution(plan_, graph_, index), rank_));
}

int Lowering::add_buffer(std::string name, std::int64_t bytes, bool persistent) {
  schedule_.buffers.push_back({.name = std::move(name), .bytes = bytes, .persistent = persistent});
  return static_cast<int>(schedule_.buffers.size()) - 1;
}

Value Lowering::add_tensor(const std::string& name, const Shape& extents) {
  const std::int64_t bytes = base::checked_mul(tensor::volume(extents), float_bytes);
  return {.buffer = add_buffer(name, bytes), .layout = tensor::channels_last(extents)};
}

void Lowering::emit(int index, const char* what, model::Task task, std::vector<int> arguments) {
  schedule_.steps.push_back({.name = node(index).name + "." + what,
                             .node = index,
                             .phase = phase_,
                             .task = std::move(task),
                             .arguments = std::move(arguments)});
}

void Lowering::declare_parameters() {
  const bool train = options_.mode == Mode::train;
  for (const Parameter& parameter : model::parameters(graph_)) {
    const std::int64_t bytes = base::checked_mul(model::count(parameter), float_bytes);
    ParameterBuffers entry{.parameter = parameter, .value = add_buffer(parameter.name, bytes, true)};
    if (parameter.trainable && train) {
      entry.gradient = add_buffer(parameter.name + ".gradient", bytes, true);
      const int states = options_.update ? model::state_count(options_.optimizer) : 0;
      for (int i = 0; i < states; ++i) {
        entry.state.push_back(add_buffer(parameter.name + ".state" + std::to_string(i), bytes, true));
      }
    }
    schedule_.parameters.push_back(std::move(entry));
  }
}

const ParameterBuffers* Lowering::parameter(int index, Parameter::Role role) const {
  const auto found = std::find_if(schedule_.parameters.begin(), schedule_.parameters.end(), [&](const auto& entry) {
    return entry.parameter.node == index && entry.parameter.role == role;
  });
  return found == schedule_.parameters.end() ? nullptr : &*found;
}

int Lowering::value_of(int index, Parameter::Role role) const {
  const ParameterBuffers* entry = parameter(index, role);
  return entry ? entry->value : -1;
}

int Lowering::gradient_of(int index, Parameter::Role role) const {
  const ParameterBuffers* entry = parameter(index, role);
  return entry ? entry->gradient : -1;
}

/// A gradient is needed where a parameter lies upstream, or everywhere if the input's is asked for.
void Lowering::mark_gradients() {
  needs_gradient_.assign(graph_.nodes.size(), false);
  for (const Parameter& parameter : model::parameters(graph_)) {
    if (parameter.trainable) needs_gradient_[static_cast<std::size_t>(parameter.node)] = true;
  }
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (std::holds_alternative<model::Input>(graph_.nodes[i].op)) needs_gradient_[i] = options_.input_gradient;
    for (const int src : graph_.nodes[i].srcs) {
      if (needs_gradient(src)) needs_gradient_[i] = true;
    }
  }
}

void Lowering::update() {
  phase_ = Phase::update;
  for (const ParameterBuffers& entry : schedule_.parameters) {
    if (entry.gradient < 0) continue;
    std::vector<int> arguments{entry.value, entry.gradient, -1, -1};
    std::copy(entry.state.begin(), entry.state.end(), arguments.begin() + 2);
    const model::UpdateTask task{.optimizer = options_.optimizer, .count = model::count(entry.parameter)};
    schedule_.steps.push_back({.name = entry.parameter.name + ".update",
                               .node = entry.parameter.node,
                               .phase = phase_,
                               .task = task,
                               .arguments = std::move(arguments)});
  }
}

void Lowering::find_lifetimes() {
  const int last = static_cast<int>(schedule_.steps.size()) - 1;
  for (int i = 0; i <= last; ++i) {
    for (const int argument : schedule_.steps[static_cast<std::size_t>(i)].arguments) {
      if (argument < 0) continue;
      Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(argument)];
      if (buffer.first_step < 0) buffer.first_step = i;
      buffer.last_step = i;
    }
  }
  for (Buffer& buffer : schedule_.buffers) {
    if (!buffer.persistent) continue;
    buffer.first_step = 0;
    buffer.last_step = last;
  }
  if (options_.keep_output) schedule_.buffers[static_cast<std::size_t>(schedule_.output)].last_step = last;
}

Schedule lower(const model::Graph& graph, const plan::Plan& plan, int rank, const LowerOptions& options) {
  plan::verify(plan, graph);
  if (plan.ranks != 1) {
    base::fail(base::Exit::does_not_fit, "the plan is for {} ranks; this version runs on one rank", plan.ranks);
  }
  return Lowering(graph, plan, rank, options).run();
}

}  // namespace orthant::schedule
