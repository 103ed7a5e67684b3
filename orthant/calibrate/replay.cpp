#include "orthant/calibrate/replay.hpp"

#include "orthant/kernels/conv.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace orthant::calibrate {
namespace {

using schedule::Buffer;
using schedule::Schedule;

std::int64_t padded(std::int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

/// Where buffers lie that other ranks keep, and after them how many bytes they take.
std::vector<std::int64_t> kept_offsets(const Schedule& schedule) {
  std::vector<std::int64_t> offsets;
  std::int64_t end = 0;
  for (const Buffer& buffer : schedule.buffers) {
    offsets.push_back(end);
    if (buffer.keeper >= 0) end += padded(buffer.bytes);
  }
  offsets.push_back(end);
  return offsets;
}

/// Numbers between -most and most.
void fill_floats(std::byte* memory, std::int64_t bytes, double most) {
  auto* numbers = reinterpret_cast<float*>(memory);
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < bytes / 4; ++i) {
    state = state * 1664525U + 1013904223U;
    numbers[i] = static_cast<float>(static_cast<double>(static_cast<std::int32_t>(state)) * 0x1p-31 * most);
  }
}

/// Such that activations neither grow nor shrink from layer to layer: numbers that are not normal are slow.
double starting_size(const model::Parameter& parameter) {
  double inputs = 1;
  for (std::size_t i = 1; i < parameter.extents.size(); ++i) inputs *= static_cast<double>(parameter.extents[i]);
  return parameter.role == model::Parameter::Role::weight ? std::sqrt(6 / inputs) : 1;
}

std::vector<Way> ways_of(const model::Task& task, int threads, bool all_ways) {
  std::vector<Way> ways;
  const auto* conv = std::get_if<model::ConvTask>(&task);
  if (conv && conv->prepared_bytes == 0 && (all_ways || conv->algorithm == model::Algorithm::automatic)) {
    model::ConvTask open = *conv;
    open.algorithm = model::Algorithm::automatic;
    for (kernels::ConvCandidate& candidate : kernels::conv_candidates(open, threads)) {
      if (!all_ways && !ways.empty()) break;
      open.algorithm = candidate.algorithm;
      ways.push_back({open, std::move(candidate.primitive)});
    }
    const auto named = std::find_if(ways.begin(), ways.end(), [&](const Way& way) {
      return std::get<model::ConvTask>(way.task).algorithm == conv->algorithm;
    });
    if (named != ways.end()) std::rotate(ways.begin(), named, named + 1);
  } else {
    ways.push_back({task, kernels::make_primitive(task, threads)});
  }
  return ways;
}

}  // namespace

std::int64_t Replay::bytes(const Schedule& schedule) {
  return schedule::place(schedule).arena_bytes + kept_offsets(schedule).back();
}

Replay::Replay(const Schedule& schedule, int threads, bool all_ways)
    : placement_(schedule::place(schedule)), kept_offsets_(kept_offsets(schedule)) {
  make_ways(schedule, threads, all_ways);
  arena_ = std::make_unique<engine::Arena>(placement_.arena_bytes);
  kept_ = std::make_unique<engine::Arena>(kept_offsets_.back());
  fill(schedule);
  for (const ReplayStep& step : steps_) {
    std::vector<void*> pointers;
    for (const int argument : schedule.steps[static_cast<std::size_t>(step.step)].arguments)
      pointers.push_back(argument < 0 ? nullptr : address(schedule, argument));
    arguments_.push_back(std::move(pointers));
  }
}

void Replay::make_ways(const Schedule& schedule, int threads, bool all_ways) {
  std::int64_t scratch = 64;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const auto* task = std::get_if<model::Task>(&schedule.steps[i].work);
    if (!task) continue;
    steps_.push_back({static_cast<int>(i), ways_of(*task, threads, all_ways)});
    for (const Way& way : steps_.back().ways) scratch = std::max(scratch, way.primitive->scratch_bytes());
  }
  scratch_ = std::make_unique<engine::Arena>(scratch);
}

std::byte* Replay::address(const Schedule& schedule, int buffer) const {
  const auto index = static_cast<std::size_t>(buffer);
  return schedule.buffers[index].keeper >= 0 ? kept_->data() + kept_offsets_[index]
                                             : arena_->data() + placement_.offsets[index];
}

/// All memory is touched. Targets are zero, which is a value as well as a label.
void Replay::fill(const Schedule& schedule) {
  fill_floats(arena_->data(), arena_->bytes(), 0.125);
  fill_floats(kept_->data(), kept_->bytes(), 0.125);
  std::memset(scratch_->data(), 0, static_cast<std::size_t>(scratch_->bytes()));
  for (const schedule::ParameterBuffers& one : schedule.parameters) {
    if (one.value < 0) continue;
    fill_floats(address(schedule, one.value), schedule.buffers[static_cast<std::size_t>(one.value)].bytes,
                starting_size(one.parameter));
  }
  for (const schedule::Port& target : schedule.targets) {
    if (target.buffer < 0) continue;
    std::memset(address(schedule, target.buffer), 0,
                static_cast<std::size_t>(schedule.buffers[static_cast<std::size_t>(target.buffer)].bytes));
  }
}

void Replay::execute(std::size_t step, std::size_t way) {
  steps_[step].ways[way].primitive->execute({.step = 2, .seed = 1}, arguments_[step], scratch_->data());
}

}  // namespace orthant::calibrate
