#include "orthant/train/chrome_trace.hpp"

#include "orthant/base/json.hpp"
#include "orthant/model/task.hpp"

#include <algorithm>
#include <array>

namespace orthant::train {
namespace {

using base::Json;

constexpr std::size_t most_events = 200'000;
constexpr std::array phase_names{"forward", "backward", "update"};

/// What is the same for every run of a step.
Json step_arguments(const engine::Engine& engine, int index) {
  const schedule::Schedule& schedule = engine.schedule();
  const schedule::Step& step = schedule.steps[static_cast<std::size_t>(index)];
  Json buffers = Json::array();
  std::int64_t bytes = 0;
  for (const int argument : step.arguments) {
    if (argument < 0) continue;
    const schedule::Buffer& buffer = schedule.buffers[static_cast<std::size_t>(argument)];
    buffers.push_back(buffer.name);
    bytes += buffer.bytes;
  }
  return {{"step", index},
          {"implementation", engine.implementation(index)},
          {"flops", model::flops(step.task)},
          {"buffers", std::move(buffers)},
          {"buffer_bytes", bytes}};
}

}  // namespace

std::string chrome_trace(const engine::Engine& engine, const engine::Trace& trace, int rank) {
  const std::vector<schedule::Step>& steps = engine.schedule().steps;
  std::vector<Json> arguments;
  for (std::size_t i = 0; i < steps.size(); ++i) arguments.push_back(step_arguments(engine, static_cast<int>(i)));

  const Json process{{"name", "process_name"},
                     {"ph", "M"},
                     {"pid", rank},
                     {"tid", 0},
                     {"args", {{"name", "rank " + std::to_string(rank)}}}};
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + process.dump();
  const std::int64_t origin = trace.events.empty() ? 0 : trace.events.front().begin_ns;
  for (const engine::TraceEvent& event : trace.events) {
    const auto index = static_cast<std::size_t>(event.step);
    const Json entry{{"name", steps[index].name},
                     {"cat", phase_names.at(static_cast<std::size_t>(steps[index].phase))},
                     {"ph", "X"},
                     {"pid", rank},
                     {"tid", 0},
                     {"ts", static_cast<double>(event.begin_ns - origin) / 1000},
                     {"dur", static_cast<double>(event.end_ns - event.begin_ns) / 1000},
                     {"args", arguments[index]}};
    text += ",\n" + entry.dump();
  }
  return text + "\n]}\n";
}

engine::Trace make_trace(const engine::Engine& engine, std::int64_t runs) {
  engine::Trace trace;
  const std::size_t wanted = engine.schedule().steps.size() * static_cast<std::size_t>(runs);
  trace.events.reserve(std::min(wanted, most_events));
  return trace;
}

bool has_room(const engine::Engine& engine, const engine::Trace& trace) {
  return trace.events.size() + engine.schedule().steps.size() <= trace.events.capacity();
}

}  // namespace orthant::train
