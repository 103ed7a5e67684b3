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
