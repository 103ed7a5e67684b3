#include "orthant/base/checked.hpp"
#include "orthant/schedule/lowering.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

constexpr std::int64_t float_bytes = sizeof(float);
/// More exchanges than one unit has in one pass.
constexpr int tags_per_unit = 64;

}  // namespace

Lowering::Lowering(const model::Graph& graph, const plan::Plan& plan, int rank, const LowerOptions& options)
    : graph_(graph),
      plan_(plan),
      rank_(rank),
      options_(options),
      units_(fuse(graph, plan)),
      consumers_(consumer_counts(graph)),
      has_stages_(std::any_of(plan.nodes.begin(), plan.nodes.end(), [](const auto& node) { return node.stage > 0; })) {
  unit_of_.assign(graph.nodes.size(), -1);
  for (std::size_t i = 0; i < units_.size(); ++i) at(unit_of_, units_[i].out) = static_cast<int>(i);
  mark_gradients();
  make_micros();
}

void Lowering::make_micros() {
  const std::int64_t samples = graph_.nodes.front().shape.n;
  for (int i = 0; i < plan_.micro_batches; ++i) {
    Micro micro{.graph = graph_, .first_sample = tensor::block_begin(samples, plan_.micro_batches, i)};
    const std::int64_t count = tensor::block_begin(samples, plan_.micro_batches, i + 1) - micro.first_sample;
    for (model::Node& node : micro.graph.nodes) node.shape.n = count;
    const std::size_t nodes = graph_.nodes.size();
    for (std::size_t n = 0; n < nodes; ++n) {
      std::vector<plan::Share> shares;
      shares.reserve(static_cast<std::size_t>(plan_.ranks));
      for (int rank = 0; rank < plan_.ranks; ++rank)
        shares.push_back(plan::share_of(plan_, micro.graph, static_cast<int>(n), rank));
      micro.shares.push_back(std::move(shares));
    }
    find_storage(micro);
    micro.values.resize(nodes);
    micro.sources.resize(nodes);
    micro.extra.assign(nodes, -1);
    micro.gradients.resize(nodes);
    micro.activation_undone.resize(nodes);
    micros_.push_back(std::move(micro));
  }
}

Schedule Lowering::run() {
  declare_parameters();
  for (const StagePass& pass : passes_of(plan_, rank_, options_.mode)) {
    micro_ = &at(micros_, pass.micro_batch);
    phase_ = pass.phase;
    pass.phase == Phase::forward ? forward_pass(pass) : backward_pass(pass);
  }
  phase_ = Phase::update;
  finish_parameters();
  spread_losses();
  settle_sends();
  find_lifetimes();
  return std::move(schedule_);
}

/// True if the node is of one of the pass's stages.
bool Lowering::is_in(const StagePass& pass, int index) const {
  const int stage = planned(index).stage;
  return stage >= pass.first_stage && stage < pass.end_stage;
}

void Lowering::forward_pass(const StagePass& pass) {
  for (int i = 0; i < static_cast<int>(units_.size()); ++i) {
    const Unit& unit = at(units_, i);
    if (!is_in(pass, unit.main)) continue;
    tag_ = (pass.micro_batch * 2 * static_cast<int>(units_.size()) + i) * tags_per_unit;
    current_node_ = unit.main;
    forward(unit);
  }
  if (is_in(pass, static_cast<int>(graph_.nodes.size()) - 1)) loss();
}

void Lowering::backward_pass(const StagePass& pass) {
  settle_forward_sends();
  std::vector<int> complete;  // units whose gradients have not been reduced yet
  const auto reduce = [&] {
    if (micro_ == &micros_.back()) std::for_each(complete.begin(), complete.end(), [&](int u) { reduce_gradients(u); });
    complete.clear();
  };
  for (int i = static_cast<int>(units_.size()) - 1; i >= 0; --i) {
    const Unit& unit = at(units_, i);
    if (!is_in(pass, unit.main)) continue;
    tag_ = ((pass.micro_batch * 2 + 1) * static_cast<int>(units_.size()) + i) * tags_per_unit;
    current_node_ = unit.main;
    backward(unit);
    complete.push_back(i);
    if (put_off_.empty()) reduce();
  }
  emit_put_off();
  reduce();
}

/// Tags that no unit uses.
int Lowering::bucket_tags() const { return plan_.micro_batches * 2 * static_cast<int>(units_.size()) * tags_per_unit; }

int Lowering::add_buffer(std::string name, std::int64_t bytes, bool persistent) {
  schedule_.buffers.push_back({.name = std::move(name), .bytes = bytes, .persistent = persistent});
  return static_cast<int>(schedule_.buffers.size()) - 1;
}

int Lowering::add_piece(std::string name, int inside, std::int64_t offset_bytes, std::int64_t bytes) {
  const int piece = add_buffer(std::move(name), bytes, at(schedule_.buffers, inside).persistent);
  at(schedule_.buffers, piece).inside = inside;
  at(schedule_.buffers, piece).offset_bytes = offset_bytes;
  return piece;
}

int Lowering::root_of(int buffer) const {
  const int inside = at(schedule_.buffers, buffer).inside;
  return inside < 0 ? buffer : inside;
}

Value Lowering::add_tensor(const std::string& name, const tensor::Box& box) {
  if (tensor::is_empty(box)) return {};
  const std::int64_t bytes = base::checked_mul(tensor::volume(box), float_bytes);
  return {.buffer = add_buffer(name, bytes), .box = box, .layout = tensor::channels_last(tensor::extents_of(box))};
}

Step Lowering::make_step(int index, const std::string& what, model::Task task, std::vector<int> arguments) const {
  if (auto* conv = std::get_if<model::ConvTask>(&task)) conv->algorithm = planned(index).kernel;
  return {.name = at(graph_.nodes, index).name + "." + what,
          .node = index,
          .phase = phase_,
          .work = std::move(task),
          .arguments = std::move(arguments)};
}

void Lowering::emit(int index, const std::string& what, model::Task task, std::vector<int> arguments) {
  schedule_.steps.push_back(make_step(index, what, std::move(task), std::move(arguments)));
}

/// A gradient is needed where a parameter lies upstream, or everywhere if the input's is asked for.
void Lowering::mark_gradients() {
  needs_gradient_.assign(graph_.nodes.size(), false);
  for (const model::Parameter& parameter : model::parameters(graph_)) {
    if (parameter.trainable) needs_gradient_[static_cast<std::size_t>(parameter.node)] = true;
  }
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (graph_.nodes[i].srcs.empty()) needs_gradient_[i] = options_.input_gradient;
    for (const int src : graph_.nodes[i].srcs) {
      if (needs_gradient(src)) needs_gradient_[i] = true;
    }
  }
}

void Lowering::find_lifetimes() {
  const int last = static_cast<int>(schedule_.steps.size()) - 1;
  for (int i = 0; i <= last; ++i) {
    for (const int argument : at(schedule_.steps, i).arguments) {
      if (argument < 0) continue;
      Buffer& buffer = at(schedule_.buffers, root_of(argument));
      if (buffer.first_step < 0) buffer.first_step = i;
      buffer.last_step = i;
    }
  }
  if (options_.keep_output) {
    for (const auto* ports : {&schedule_.outputs, &schedule_.predictions}) {
      for (const Port& output : *ports) {
        if (output.buffer >= 0) at(schedule_.buffers, root_of(output.buffer)).last_step = last;
      }
    }
  }
  for (Buffer& buffer : schedule_.buffers) {
    if (buffer.persistent) {
      buffer.first_step = 0;
      buffer.last_step = last;
    } else if (buffer.inside >= 0) {
      buffer.first_step = at(schedule_.buffers, buffer.inside).first_step;
      buffer.last_step = at(schedule_.buffers, buffer.inside).last_step;
    }
  }
}

Schedule lower(const model::Graph& graph, const plan::Plan& plan, int rank, const LowerOptions& options) {
  plan::verify(plan, graph);
  return Lowering(graph, plan, rank, options).run();
}

}  // namespace orthant::schedule
