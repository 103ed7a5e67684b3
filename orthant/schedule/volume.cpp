#include "orthant/schedule/schedule.hpp"

namespace orthant::schedule {

std::int64_t flops(const Step& step) {
  const auto* task = std::get_if<model::Task>(&step.work);
  return task ? model::flops(*task) : 0;
}

Volume sent(const Schedule& schedule, Kind kind) {
  Volume volume;
  for (const Exchange& exchange : schedule.exchanges) {
    if (exchange.kind != kind) continue;
    for (const Message& message : exchange.sends) {
      ++volume.messages;
      volume.bytes += message.bytes;
    }
  }
  return volume;
}

}  // namespace orthant::schedule
