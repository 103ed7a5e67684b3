#include "orthant/base/checked.hpp"
#include "orthant/model/arguments.hpp"
#include "orthant/schedule/schedule.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

Volume sum(const Volume& a, const Volume& b) {
  return {.messages = a.messages + b.messages,
          .bytes = a.bytes + b.bytes,
          .announced_bytes = a.announced_bytes + b.announced_bytes};
}

}  // namespace

std::int64_t flops(const Step& step) {
  const auto* task = std::get_if<model::Task>(&step.work);
  return task ? model::flops(*task) : 0;
}

std::int64_t bytes_moved(const Step& step) {
  const auto* task = std::get_if<model::Task>(&step.work);
  std::int64_t bytes = 0;
  if (!task) return bytes;
  for (const model::Argument& argument : model::arguments(*task)) {
    if (step.arguments[argument.position] >= 0) bytes = base::checked_add(bytes, model::bytes_moved(argument));
  }
  return bytes;
}

namespace {

std::int64_t collective_bytes(const Collective& collective, Collective::Operation of_all_ranks) {
  const std::int64_t bytes = base::checked_mul(collective.count, model::bytes_of(collective.type));
  const bool all = collective.operation == of_all_ranks;
  return all ? base::checked_mul(bytes, static_cast<std::int64_t>(collective.ranks.size())) : bytes;
}

}  // namespace

std::int64_t bytes_given(const Collective& collective) {
  return collective_bytes(collective, Collective::Operation::reduce_scatter);
}

std::int64_t bytes_taken(const Collective& collective) {
  return collective_bytes(collective, Collective::Operation::all_gather);
}

bool receives_something(const Exchange& exchange) {
  return std::any_of(exchange.rounds.begin(), exchange.rounds.end(),
                     [](const Round& round) { return !round.receives.empty() || round.collective.has_value(); });
}

Volume sent(const Exchange& exchange) {
  Volume volume;
  for (const Round& round : exchange.rounds) {
    for (const Message& message : round.sends) {
      ++volume.messages;
      (message.transport == Transport::moved ? volume.bytes : volume.announced_bytes) += message.bytes;
    }
    if (!round.collective) continue;
    ++volume.messages;
    volume.bytes += bytes_given(*round.collective);
  }
  return volume;
}

std::int64_t request_count(const Schedule& schedule) {
  std::int64_t count = 0;
  for (const Exchange& exchange : schedule.exchanges)
    for_each_message(exchange, [&](const Message&, bool /*is_receive*/) { ++count; });
  return count;
}

Volume sent(const Schedule& schedule, Kind kind) {
  Volume volume;
  for (const Exchange& exchange : schedule.exchanges) {
    if (exchange.kind == kind) volume = sum(volume, sent(exchange));
  }
  return volume;
}

Volume sent(const Schedule& schedule) {
  Volume volume;
  for (const Exchange& exchange : schedule.exchanges) volume = sum(volume, sent(exchange));
  return volume;
}

}  // namespace orthant::schedule
