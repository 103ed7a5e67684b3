#include "orthant/oracle/memory.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace orthant::oracle {
namespace {

using schedule::Buffer;
using schedule::Schedule;

enum class Use { weights, gradients, state, activations, halos, messages, samples };

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::vector<Use> uses_of(const Schedule& schedule) {
  std::vector<Use> uses(schedule.buffers.size(), Use::activations);
  const auto mark = [&](int buffer, Use use) {
    if (buffer >= 0) uses[static_cast<std::size_t>(buffer)] = use;
  };
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const std::string& name = schedule.buffers[i].name;
    if (ends_with(name, ".packed") || ends_with(name, ".arrived")) uses[i] = Use::messages;
    if (ends_with(name, ".prepared")) uses[i] = Use::weights;
  }
  for (const schedule::ParameterBuffers& one : schedule.parameters) {
    mark(one.value, Use::weights);
    mark(one.gradient, Use::gradients);
  }
  for (const schedule::Bucket& bucket : schedule.buckets) {
    mark(bucket.value, Use::weights);
    mark(bucket.gradient, Use::gradients);
    for (const int state : bucket.state) mark(state, Use::state);
  }
  for (const auto* ports : {&schedule.inputs, &schedule.targets})
    for (const schedule::Port& port : *ports) mark(port.buffer, Use::samples);
  return uses;
}

bool has_memory(const Buffer& buffer) { return buffer.inside < 0 && buffer.keeper < 0; }

/// The step at which buffers and scratch memory together take most.
std::size_t fullest_step(const Schedule& schedule) {
  const std::vector<std::int64_t> live = schedule::live_bytes(schedule);
  std::size_t fullest = 0;
  std::int64_t most = -1;
  for (std::size_t step = 0; step < live.size(); ++step) {
    const std::int64_t all = live[step] + std::max<std::int64_t>(0, schedule.steps[step].scratch_bytes);
    if (all > most) {
      most = all;
      fullest = step;
    }
  }
  return fullest;
}

/// What arrives in place around the tensors that are alive.
std::int64_t halo_bytes(const Schedule& schedule, const std::vector<Use>& uses, const std::vector<bool>& live) {
  std::int64_t bytes = 0;
  for (const schedule::Exchange& exchange : schedule.exchanges) {
    schedule::for_each_message(exchange, [&](const schedule::Message& message, bool is_receive) {
      const auto buffer = static_cast<std::size_t>(message.buffer);
      if (is_receive && live[buffer] && uses[buffer] == Use::activations) bytes += message.bytes;
    });
  }
  return bytes;
}

}  // namespace

std::int64_t Memory::total() const {
  return weights + gradients + state + activations + halos + messages + workspace + samples + process;
}

Memory memory_of(const Schedule& schedule, std::int64_t process_bytes) {
  const schedule::Placement placement = schedule::place(schedule);
  const std::vector<Use> uses = uses_of(schedule);
  const auto step = static_cast<int>(fullest_step(schedule));
  Memory memory{.process = process_bytes, .arena_bytes = placement.arena_bytes};
  std::vector<bool> live(schedule.buffers.size());
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    if (buffer.inside < 0 && buffer.keeper >= 0) memory.borrowed_bytes += buffer.bytes;
    live[i] = has_memory(buffer) && (buffer.persistent || (buffer.first_step <= step && step <= buffer.last_step));
    if (!live[i]) continue;
    switch (uses[i]) {
      case Use::weights: memory.weights += buffer.bytes; break;
      case Use::gradients: memory.gradients += buffer.bytes; break;
      case Use::state: memory.state += buffer.bytes; break;
      case Use::messages: memory.messages += buffer.bytes; break;
      case Use::samples: memory.samples += buffer.bytes; break;
      case Use::activations:
      case Use::halos: break;
    }
  }
  if (!schedule.steps.empty())
    memory.workspace = std::max<std::int64_t>(0, schedule.steps[static_cast<std::size_t>(step)].scratch_bytes);
  memory.borrowed_bytes = std::min(memory.borrowed_bytes, placement.arena_bytes);
  memory.halos = halo_bytes(schedule, uses, live);
  memory.activations = placement.arena_bytes + process_bytes - memory.total();
  return memory;
}

}  // namespace orthant::oracle
