#include "orthant/schedule/verify.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/schedule/verification.hpp"

#include <algorithm>
#include <iterator>

namespace orthant::schedule {

const Buffer& buffer_of(const Schedule& schedule, int buffer) {
  return schedule.buffers[static_cast<std::size_t>(buffer)];
}

int root_of(const Schedule& schedule, int buffer) {
  const int inside = buffer_of(schedule, buffer).inside;
  return inside < 0 ? buffer : inside;
}

std::vector<Touch> touches_of(const Schedule& schedule, const Step& step) {
  std::vector<Touch> touches;
  const auto* task = std::get_if<model::Task>(&step.work);
  if (!task) return touches;
  const std::vector<model::Argument> arguments = model::arguments(*task);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const int buffer = step.arguments[i];
    if (buffer < 0 || arguments[i].access == model::Access::none) continue;
    const int root = root_of(schedule, buffer);
    const std::int64_t first = buffer == root ? 0 : buffer_of(schedule, buffer).offset_bytes;
    touches.push_back({.argument = arguments[i],
                       .root = root,
                       .first_byte = first,
                       .bytes = {arguments[i].touched, model::bytes_of(arguments[i].type), first}});
  }
  return touches;
}

ByteSet bytes_of(const Schedule& schedule, const Message& message) {
  const Buffer& buffer = buffer_of(schedule, message.buffer);
  const std::int64_t begin = message.offset_bytes + (buffer.inside < 0 ? 0 : buffer.offset_bytes);
  return ByteSet(tensor::Range{begin, begin + message.bytes});
}

std::vector<Flight> flights_of(const Schedule& schedule) {
  std::vector<Flight> flights(schedule.exchanges.size());
  for (int i = 0; i < static_cast<int>(schedule.steps.size()); ++i) {
    const auto& work = schedule.steps[static_cast<std::size_t>(i)].work;
    if (const auto* start = std::get_if<Start>(&work)) flights[static_cast<std::size_t>(start->exchange)].start = i;
    if (const auto* finish = std::get_if<Finish>(&work)) flights[static_cast<std::size_t>(finish->exchange)].finish = i;
  }
  return flights;
}

int release_of(const Schedule& schedule, const Message& message) {
  const int root = root_of(schedule, message.buffer);
  int release = -1;
  for (int i = 0; i < static_cast<int>(schedule.steps.size()); ++i) {
    const Step& step = schedule.steps[static_cast<std::size_t>(i)];
    if (!std::holds_alternative<Finish>(step.work)) continue;
    const auto names = [&](int buffer) { return buffer >= 0 && root_of(schedule, buffer) == root; };
    if (std::any_of(step.arguments.begin(), step.arguments.end(), names)) release = i;
  }
  return release;
}

Mistakes verify(const Schedule& schedule) {
  Mistakes mistakes;
  for (const auto stage : {check_structure, check_arguments, check_exchanges}) {
    mistakes = stage(schedule);
    if (!mistakes.empty()) return mistakes;
  }
  mistakes = check_lifetimes(schedule);
  std::ranges::move(check_memory(schedule), std::back_inserter(mistakes));
  return mistakes;
}

void check(const Schedule& schedule) {
  const Mistakes mistakes = verify(schedule);
  if (mistakes.empty()) return;
  constexpr std::size_t most = 3;
  const auto shown = std::span(mistakes).first(std::min(most, mistakes.size()));
  base::fail(base::Exit::internal, "a schedule has {} mistakes: {}; please report this", mistakes.size(),
             fmt::join(shown, "; "));
}

}  // namespace orthant::schedule
