#include "orthant/schedule/schedule.hpp"

namespace orthant::schedule {

std::vector<std::int64_t> live_bytes(const Schedule& schedule) {
  std::vector<std::int64_t> change(schedule.steps.size() + 1, 0);
  std::int64_t live = 0;
  for (const Buffer& buffer : schedule.buffers) {
    if (buffer.inside >= 0 || buffer.keeper >= 0) continue;
    if (buffer.persistent) live += buffer.bytes;
    if (buffer.persistent || buffer.first_step < 0) continue;
    change[static_cast<std::size_t>(buffer.first_step)] += buffer.bytes;
    change[static_cast<std::size_t>(buffer.last_step) + 1] -= buffer.bytes;
  }
  change.pop_back();
  for (std::int64_t& bytes : change) bytes = live += bytes;
  return change;
}

}  // namespace orthant::schedule
