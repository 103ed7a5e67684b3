#include "orthant/train/chrome_trace.hpp"

#include "orthant/base/json.hpp"
#include "orthant/comm/typed.hpp"
#include "orthant/model/task.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace orthant::train {
namespace {

using base::Json;

constexpr std::size_t most_events = 200'000;
/// Shorter polls found nothing to move; an event for each would double the file.
constexpr std::int64_t least_poll_ns = 1000;
constexpr std::array phase_names{"forward", "backward", "update"};

/// What is the same for every run of a step.
Json step_arguments(const engine::Engine& engine, int index) {
  const schedule::Schedule& schedule = engine.schedule();
  const schedule::Step& step = schedule.steps[static_cast<std::size_t>(index)];
  Json buffers = Json::array();
  for (const int argument : step.arguments) {
    if (argument >= 0) buffers.push_back(schedule.buffers[static_cast<std::size_t>(argument)].name);
  }
  return {{"step", index},
          {"implementation", engine.implementation(index)},
          {"flops", schedule::flops(step)},
          {"buffers", std::move(buffers)},
          {"bytes", schedule::bytes_moved(step)}};
}

Json exchange_arguments(const schedule::Exchange& exchange) {
  Json to = Json::array();
  Json from = Json::array();
  schedule::for_each_message(exchange, [&](const schedule::Message& message, bool is_receive) {
    (is_receive ? from : to)
        .push_back(
            {{"rank", message.peer}, {"bytes", message.bytes}, {"transport", schedule::name_of(message.transport)}});
  });
  const schedule::Volume volume = schedule::sent(exchange);
  return {{"kind", schedule::name_of(exchange.kind)},
          {"rounds", exchange.rounds.size()},
          {"bytes_sent", volume.bytes},
          {"bytes_announced", volume.announced_bytes},
          {"to", std::move(to)},
          {"from", std::move(from)}};
}

Json row_name(int rank, int row, const std::string& name) {
  return {{"name", "thread_name"}, {"ph", "M"}, {"pid", rank}, {"tid", row}, {"args", {{"name", name}}}};
}

/// The events of one rank as text, one line each.
class RankEvents {
 public:
  RankEvents(const engine::Engine& engine, int rank, std::int64_t origin_ns)
      : engine_(engine), rank_(rank), origin_ns_(origin_ns), begun_(engine.schedule().exchanges.size()) {
    for (std::size_t i = 0; i < engine.schedule().steps.size(); ++i)
      arguments_.push_back(step_arguments(engine, static_cast<int>(i)));
    add({{"name", "process_name"},
         {"ph", "M"},
         {"pid", rank},
         {"tid", 0},
         {"args", {{"name", "rank " + std::to_string(rank)}}}});
    add(row_name(rank, 0, "compute"));
  }

  void add(const engine::TraceEvent& event) {
    const schedule::Step& step = engine_.schedule().steps[static_cast<std::size_t>(event.step)];
    add_event(step.name, phase_names.at(static_cast<std::size_t>(step.phase)), 0, event.begin_ns, event.end_ns,
              arguments_[static_cast<std::size_t>(event.step)]);
    if (event.polled_ns - event.end_ns >= least_poll_ns)
      add_event("poll", "messages", 0, event.end_ns, event.polled_ns, Json::object());
    if (const auto* start = std::get_if<schedule::Start>(&step.work)) {
      begun_[static_cast<std::size_t>(start->exchange)] = event.begin_ns;
    } else if (const auto* finish = std::get_if<schedule::Finish>(&step.work)) {
      const auto index = static_cast<std::size_t>(finish->exchange);
      const schedule::Exchange& exchange = engine_.schedule().exchanges[index];
      add_event(exchange.name, "messages", row_for(begun_[index], event.end_ns), begun_[index], event.end_ns,
                exchange_arguments(exchange));
    }
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void add(const Json& entry) { text_ += ",\n" + entry.dump(); }

  void add_event(const std::string& name, const char* category, int row, std::int64_t begin_ns, std::int64_t end_ns,
                 const Json& arguments) {
    add({{"name", name},
         {"cat", category},
         {"ph", "X"},
         {"pid", rank_},
         {"tid", row},
         {"ts", static_cast<double>(begin_ns - origin_ns_) / 1000},
         {"dur", static_cast<double>(end_ns - begin_ns) / 1000},
         {"args", arguments}});
  }

  /// The first row below the steps that is free from begin to end.
  int row_for(std::int64_t begin_ns, std::int64_t end_ns) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i] > begin_ns) continue;
      rows_[i] = end_ns;
      return static_cast<int>(i) + 1;
    }
    rows_.push_back(end_ns);
    add(row_name(rank_, static_cast<int>(rows_.size()), "messages"));
    return static_cast<int>(rows_.size());
  }

  const engine::Engine& engine_;
  int rank_;
  std::int64_t origin_ns_;
  std::vector<std::int64_t> begun_;
  std::vector<std::int64_t> rows_;  ///< when each ends
  std::vector<Json> arguments_;
  std::string text_;
};

}  // namespace

std::unique_ptr<data::io::OutputFile> open_trace(const std::string& path, const comm::Comm& comm) {
  return path.empty() || comm.rank() != 0 ? nullptr : std::make_unique<data::io::OutputFile>(path);
}

void write_trace(data::io::OutputFile* file, const engine::Engine& engine, const engine::Trace& trace,
                 comm::Comm& comm) {
  const std::int64_t first =
      trace.events.empty() ? std::numeric_limits<std::int64_t>::max() : trace.events.front().begin_ns;
  RankEvents events(engine, comm.rank(), comm::min(comm, first));
  for (const engine::TraceEvent& event : trace.events) events.add(event);
  const auto texts = comm::gather(comm, std::span<const char>(events.text()), 0);
  if (!file) return;
  std::string all = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  for (const std::vector<char>& text : texts) {
    const bool first_text = &text == &texts.front();
    all.append(text.begin() + (first_text ? 1 : 0), text.end());  // no comma before the first
  }
  file->write(all + "\n]}\n");
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
