#include "orthant/schedule/emitter.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/error.hpp"

namespace orthant::schedule {
namespace {

/// Puts the name of a step before an error.
template <class Ask>
auto naming(const std::string& step, Ask ask) {
  try {
    return ask();
  } catch (const base::Error& error) {
    throw base::Error(error.code(), step + ": " + error.what());
  }
}

}  // namespace

int Emitter::root_of(int index) const {
  const int inside = buffer(index).inside;
  return inside < 0 ? index : inside;
}

int Emitter::add_buffer(std::string name, std::int64_t bytes, bool persistent) {
  schedule_.buffers.push_back({.name = std::move(name), .bytes = bytes, .persistent = persistent});
  return static_cast<int>(schedule_.buffers.size()) - 1;
}

int Emitter::add_piece(std::string name, int inside, std::int64_t offset_bytes, std::int64_t bytes) {
  const int piece = add_buffer(std::move(name), bytes, buffer(inside).persistent);
  buffer(piece).inside = inside;
  buffer(piece).offset_bytes = offset_bytes;
  return piece;
}

Value Emitter::add_tensor(const std::string& name, const tensor::Box& box) {
  if (tensor::is_empty(box)) return {};
  const std::int64_t bytes = base::checked_mul(tensor::volume(box), float_bytes);
  return {.buffer = add_buffer(name, bytes), .box = box, .layout = tensor::channels_last(tensor::extents_of(box))};
}

Tensor Emitter::add_tensor(const std::string& name, const std::vector<tensor::Box>& boxes) {
  if (boxes.empty()) return {};
  tensor::Box around = boxes.front();
  around.hi.c = around.lo.c;
  for (const tensor::Box& box : boxes) around.hi.c += box.hi.c - box.lo.c;
  Tensor tensor{.all = add_tensor(name, around), .boxes = {}, .copied = true};
  tensor.all.box = boxes.front();
  std::int64_t first = 0;
  for (const tensor::Box& box : boxes) {
    Value value = tensor.all;
    value.box = box;
    value.layout = tensor::channel_range(tensor.all.layout, first, box.hi.c - box.lo.c);
    tensor.boxes.push_back(value);
    first += box.hi.c - box.lo.c;
  }
  return tensor;
}

Step Emitter::make_step(int node, const std::string& what, model::Task task, std::vector<int> arguments) const {
  return {.name = at(analysis_.graph().nodes, node).name + "." + what,
          .node = node,
          .phase = phase_,
          .work = std::move(task),
          .arguments = std::move(arguments)};
}

void Emitter::emit(Step step) {
  if (step.scratch_bytes == Step::unknown_bytes) step.scratch_bytes = scratch_bytes(step);
  schedule_.steps.push_back(std::move(step));
}

std::int64_t Emitter::scratch_bytes(const Step& step) const {
  const auto* task = std::get_if<model::Task>(&step.work);
  if (!task) return 0;
  if (options_.needs.scratch_bytes) return naming(step.name, [&] { return options_.needs.scratch_bytes(*task); });
  const auto* conv = std::get_if<model::ConvTask>(task);
  const bool chosen = conv && conv->algorithm != model::Algorithm::automatic;
  return chosen ? analysis_.planned(step.node).kernels[conv->pass].scratch_bytes : Step::unknown_bytes;
}

PreparedWeights Emitter::prepared_weights(const std::string& step, const model::ConvTask& task) const {
  if (!options_.needs.prepared_weights) return {};
  return naming(step, [&] { return options_.needs.prepared_weights(task); });
}

void Emitter::emit(int node, const std::string& what, model::Task task, std::vector<int> arguments) {
  emit(make_step(node, what, std::move(task), std::move(arguments)));
}

void Emitter::emit(std::string name, const std::variant<Start, Finish>& work, std::vector<int> arguments) {
  Step& step = schedule_.steps.emplace_back();
  step.name = std::move(name);
  step.node = node_;
  step.phase = phase_;
  std::visit([&](const auto& messages) { step.work = messages; }, work);
  step.arguments = std::move(arguments);
  step.scratch_bytes = 0;
}

void Emitter::emit(std::vector<Step> steps) {
  for (Step& step : steps) emit(std::move(step));
}

void Emitter::copy(int node, const std::string& what, const Value& from, const Value& to) {
  emit(node, what, model::CopyTask{.src = from.layout, .dst = to.layout}, {from.buffer, to.buffer});
}

void Emitter::find_lifetimes(const std::vector<int>& kept) {
  const int last = static_cast<int>(schedule_.steps.size()) - 1;
  for (int i = 0; i <= last; ++i) {
    for (const int argument : at(schedule_.steps, i).arguments) {
      if (argument < 0) continue;
      Buffer& used = buffer(root_of(argument));
      if (used.first_step < 0) used.first_step = i;
      used.last_step = i;
    }
  }
  for (const int index : kept) buffer(root_of(index)).last_step = last;
  for (Buffer& one : schedule_.buffers) {
    if (one.persistent) {
      one.first_step = 0;
      one.last_step = last;
    } else if (one.inside >= 0) {
      one.first_step = buffer(one.inside).first_step;
      one.last_step = buffer(one.inside).last_step;
    }
  }
}

}  // namespace orthant::schedule
