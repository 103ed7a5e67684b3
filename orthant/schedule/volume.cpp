#include "orthant/base/checked.hpp"
#include "orthant/model/arguments.hpp"
#include "orthant/schedule/schedule.hpp"

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

Volume sent(const Exchange& exchange) {
  Volume volume;
  for (const Message& message : exchange.sends) {
    ++volume.messages;
    (message.transport == Transport::moved ? volume.bytes : volume.announced_bytes) += message.bytes;
  }
  return volume;
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
