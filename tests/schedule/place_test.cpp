#include "orthant/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include <random>

namespace orthant::schedule {
namespace {

bool overlap(std::int64_t a, std::int64_t a_bytes, std::int64_t b, std::int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

Schedule random_schedule(std::mt19937& random) {
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  Schedule schedule;
  schedule.steps.resize(static_cast<std::size_t>(pick(1, 20)));
  const int last = static_cast<int>(schedule.steps.size()) - 1;
  for (int i = pick(1, 30); i > 0; --i) {
    Buffer buffer{.name = "b",
                  .bytes = pick(0, 5) == 0 ? pick(60'000, 200'000) : pick(0, 1000),
                  .persistent = pick(0, 4) == 0,
                  .shared = pick(0, 3) == 0};
    buffer.first_step = buffer.persistent ? 0 : pick(0, last);
    buffer.last_step = buffer.persistent ? last : pick(buffer.first_step, last);
    schedule.buffers.push_back(buffer);
  }
  return schedule;
}

TEST(Place, BuffersThatLiveTogetherNeverOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    Schedule schedule = random_schedule(random);
    for (Step& step : schedule.steps) step.scratch_bytes = static_cast<std::int64_t>(random() % 500);
    const Placement placement = place(schedule);

    EXPECT_EQ(placement.shared_bytes % 4096, 0);
    for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
      const Buffer& a = schedule.buffers[i];
      EXPECT_EQ(placement.offsets[i] % (a.bytes < 64 << 10 ? 64 : 4096), 0);
      EXPECT_LE(placement.offsets[i] + a.bytes, a.shared ? placement.shared_bytes : placement.arena_bytes);
      EXPECT_GE(placement.offsets[i], a.shared ? 0 : placement.shared_bytes);
      for (std::size_t j = i + 1; j < schedule.buffers.size(); ++j) {
        const Buffer& b = schedule.buffers[j];
        const bool together = a.first_step <= b.last_step && b.first_step <= a.last_step;
        EXPECT_FALSE(together && overlap(placement.offsets[i], a.bytes, placement.offsets[j], b.bytes));
      }
      for (std::size_t step = 0; step < schedule.steps.size(); ++step) {
        const bool alive = a.first_step <= static_cast<int>(step) && static_cast<int>(step) <= a.last_step;
        EXPECT_FALSE(alive && overlap(placement.offsets[i], a.bytes, placement.scratch_offsets[step],
                                      schedule.steps[step].scratch_bytes));
      }
    }
  }
}

TEST(Place, BuffersThatDoNotMeetShareMemory) {
  Schedule schedule;
  schedule.steps.resize(4);
  schedule.buffers = {{.name = "a", .bytes = 6400, .first_step = 0, .last_step = 1},
                      {.name = "b", .bytes = 6400, .first_step = 2, .last_step = 3},
                      {.name = "p", .bytes = 640, .persistent = true, .first_step = 0, .last_step = 3}};

  const Placement placement = place(schedule);

  EXPECT_EQ(placement.arena_bytes, 4096 + 6400);
  EXPECT_EQ(placement.persistent_bytes, 640);
  EXPECT_EQ(placement.offsets[0], placement.offsets[1]);
}

}  // namespace
}  // namespace orthant::schedule
