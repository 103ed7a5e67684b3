#include "orthant/schedule/chrome_trace.hpp"

#include "orthant/base/json.hpp"
#include "orthant/model/task.hpp"

#include <array>

namespace orthant::schedule {
namespace {

using base::Json;

/// Shorter polls found nothing to move; an event for each would double the file.
constexpr std::int64_t least_poll_ns = 1000;
constexpr std::array phase_names{"forward", "backward", "update"};

Json step_arguments(const TracedRank& traced, int index) {
  const Schedule& schedule = traced.schedule;
  const Step& step = schedule.steps[static_cast<std::size_t>(index)];
  Json buffers = Json::array();
  for (const int argument : step.arguments) {
    if (argument >= 0) buffers.push_back(schedule.buffers[static_cast<std::size_t>(argument)].name);
  }
  return {{"step", index},
          {"implementation", traced.implementation ? traced.implementation(index) : ""},
          {"flops", flops(step)},
          {"buffers", std::move(buffers)},
          {"bytes", bytes_moved(step)}};
}

Json exchange_arguments(const Exchange& exchange) {
  Json to = Json::array();
  Json from = Json::array();
  for_each_message(exchange, [&](const Message& message, bool is_receive) {
    (is_receive ? from : to)
        .push_back({{"rank", message.peer}, {"bytes", message.bytes}, {"transport", name_of(message.transport)}});
  });
  const Volume volume = sent(exchange);
  return {{"kind", name_of(exchange.kind)},
          {"rounds", exchange.rounds.size()},
          {"bytes_sent", volume.bytes},
          {"bytes_announced", volume.announced_bytes},
          {"to", std::move(to)},
          {"from", std::move(from)}};
}

Json label(const char* kind, int rank, int row, const std::string& name) {
  return {{"name", kind}, {"ph", "M"}, {"pid", rank}, {"tid", row}, {"args", {{"name", name}}}};
}

}  // namespace

ChromeEvents::ChromeEvents(TracedRank traced) : traced_(std::move(traced)), begun_(traced_.schedule.exchanges.size()) {
  add_entry(label("process_name", traced_.rank, 0, traced_.title));
  add_entry(label("thread_name", traced_.rank, 0, "compute"));
}

void ChromeEvents::add(const TimedStep& event) {
  const Step& step = traced_.schedule.steps[static_cast<std::size_t>(event.step)];
  add_event(step.name, phase_names.at(static_cast<std::size_t>(step.phase)), 0, event,
            step_arguments(traced_, event.step));
  if (event.polled_ns - event.end_ns >= least_poll_ns)
    add_event("poll", "messages", 0, {.begin_ns = event.end_ns, .end_ns = event.polled_ns}, Json::object());
  if (const auto* start = std::get_if<Start>(&step.work)) {
    begun_[static_cast<std::size_t>(start->exchange)] = event.begin_ns;
  } else if (const auto* finish = std::get_if<Finish>(&step.work)) {
    const auto index = static_cast<std::size_t>(finish->exchange);
    const Exchange& exchange = traced_.schedule.exchanges[index];
    add_event(exchange.name, "messages", row_for(begun_[index], event.end_ns),
              {.begin_ns = begun_[index], .end_ns = event.end_ns}, exchange_arguments(exchange));
  }
}

void ChromeEvents::add_entry(const Json& entry) { text_ += (text_.empty() ? "\n" : ",\n") + entry.dump(); }

void ChromeEvents::add_event(const std::string& name, const char* category, int row, const TimedStep& when,
                             const Json& arguments) {
  add_entry({{"name", name},
             {"cat", category},
             {"ph", "X"},
             {"pid", traced_.rank},
             {"tid", row},
             {"ts", static_cast<double>(when.begin_ns - traced_.origin_ns) / 1000},
             {"dur", static_cast<double>(when.end_ns - when.begin_ns) / 1000},
             {"args", arguments}});
}

/// The first row below the steps that is free from begin to end.
int ChromeEvents::row_for(std::int64_t begin_ns, std::int64_t end_ns) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i] > begin_ns) continue;
    rows_[i] = end_ns;
    return static_cast<int>(i) + 1;
  }
  rows_.push_back(end_ns);
  const int row = static_cast<int>(rows_.size());
  add_entry(label("thread_name", traced_.rank, row, "messages"));
  return row;
}

std::string chrome_trace(std::span<const std::string> texts) {
  std::string all = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  for (const std::string& text : texts) {
    if (&text != texts.data()) all += ',';
    all += text;
  }
  return all + "\n]}\n";
}

}  // namespace orthant::schedule
