#include "orthant/train/chrome_trace.hpp"

#include "orthant/comm/typed.hpp"
#include "orthant/schedule/chrome_trace.hpp"

#include <algorithm>
#include <limits>

namespace orthant::train {
namespace {

constexpr std::size_t most_events = 200'000;

}  // namespace

std::unique_ptr<data::io::OutputFile> open_trace(const std::string& path, const comm::Comm& comm) {
  return path.empty() || comm.rank() != 0 ? nullptr : std::make_unique<data::io::OutputFile>(path);
}

void write_trace(data::io::OutputFile* file, const engine::Engine& engine, const engine::Trace& trace,
                 comm::Comm& comm) {
  const std::int64_t first =
      trace.events.empty() ? std::numeric_limits<std::int64_t>::max() : trace.events.front().begin_ns;
  schedule::ChromeEvents events({.schedule = engine.schedule(),
                                 .rank = comm.rank(),
                                 .title = "rank " + std::to_string(comm.rank()),
                                 .origin_ns = comm::min(comm, first),
                                 .implementation = [&](int step) { return engine.implementation(step); }});
  for (const engine::TraceEvent& event : trace.events)
    events.add({event.step, event.begin_ns, event.end_ns, event.polled_ns});
  const auto gathered = comm::gather(comm, std::span<const char>(events.text()), 0);
  if (!file) return;
  std::vector<std::string> texts;
  for (const std::vector<char>& text : gathered) texts.emplace_back(text.begin(), text.end());
  file->write(schedule::chrome_trace(texts));
  file->commit();
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
