#include "orthant/oracle/simulation.hpp"

#include <gtest/gtest.h>

namespace orthant::oracle {
namespace {

using schedule::Finish;
using schedule::Round;
using schedule::Schedule;
using schedule::Start;

constexpr double ms = 1e-3;

/// A task that takes so many milliseconds on the machine of these tests.
model::FillTask task_of(int milliseconds) {
  return {.dst = tensor::channels_last({.n = 1, .c = milliseconds, .d = 1, .h = 1, .w = 1})};
}

/// 1 GB/s, 0.1 ms, no work for processors but what a test adds.
Profile profile_of_ms() {
  Profile profile{.name = "test", .ranks_per_machine = 1, .memory_bytes = 1 << 30};
  Setting setting{.flops_per_second = 1e9, .memory_bytes_per_second = 1e9};
  for (int milliseconds = 1; milliseconds <= 100; ++milliseconds) {
    const model::Task task = task_of(milliseconds);
    setting.tasks[task_key(task)] = {.features = features_of(task), .seconds = milliseconds * ms};
  }
  profile.settings.push_back(setting);
  profile.between = {.latency_seconds = 0.1 * ms, .bytes_per_second = 1e9, .moves_alone = true};
  profile.inside = profile.between;
  return profile;
}

/// Steps, one after the other.
class Writer {
 public:
  Writer& compute(int milliseconds) {
    schedule_.steps.push_back({.name = "compute", .work = model::Task(task_of(milliseconds)), .arguments = {-1}});
    return *this;
  }
  Writer& start(int exchange) {
    schedule_.steps.push_back({.name = "start", .work = Start{exchange}});
    return *this;
  }
  Writer& finish(int exchange) {
    schedule_.steps.push_back({.name = "finish", .work = Finish{exchange}});
    return *this;
  }
  /// Both directions, so many bytes, in so many rounds.
  Writer& exchange(int peer, std::int64_t bytes, int rounds = 1) {
    schedule::Exchange exchange{.name = "exchange", .tag = static_cast<int>(schedule_.exchanges.size())};
    for (int i = 0; i < rounds; ++i) {
      exchange.rounds.push_back({.sends = {{.peer = peer, .buffer = 0, .bytes = bytes}},
                                 .receives = {{.peer = peer, .buffer = 0, .bytes = bytes}}});
    }
    schedule_.exchanges.push_back(exchange);
    return *this;
  }
  [[nodiscard]] Schedule done() const { return schedule_; }

 private:
  Schedule schedule_;
};

std::vector<double> ends_of(const std::vector<Schedule>& ranks, const Profile& profile) {
  std::vector<RankSchedule> schedules;
  std::vector<int> actor_of;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    schedules.push_back({static_cast<int>(rank), 1, ranks[rank]});
    actor_of.push_back(static_cast<int>(rank));
  }
  const Prices prices(profile, 1, 1);
  Course course = Simulation(make_actors({schedules, actor_of, {}}, prices), profile).run();
  EXPECT_EQ(course.forced, 0);
  return course.ends;
}

TEST(Simulation, MessagesHideBehindComputing) {
  // Posted at 1 ms, over at 1 + 2 + 0.1 ms; computing ends at 11 ms.
  const Writer step = Writer().exchange(1, 2'000'000).compute(1).start(0).compute(10).finish(0);
  const Writer other = Writer().exchange(0, 2'000'000).compute(1).start(0).compute(10).finish(0);

  const std::vector<double> ends = ends_of({step.done(), other.done()}, profile_of_ms());

  EXPECT_NEAR(ends[0], 11 * ms, 1e-9);
  EXPECT_NEAR(ends[1], 11 * ms, 1e-9);
}

TEST(Simulation, WhatIsNotHiddenIsWaitedFor) {
  const Writer step = Writer().exchange(1, 20'000'000).compute(1).start(0).compute(10).finish(0);
  const Writer other = Writer().exchange(0, 20'000'000).compute(1).start(0).compute(10).finish(0);

  const std::vector<double> ends = ends_of({step.done(), other.done()}, profile_of_ms());

  EXPECT_NEAR(ends[0], 21.1 * ms, 1e-9);
  EXPECT_NEAR(ends[1], 21.1 * ms, 1e-9);
}

TEST(Simulation, ARankWaitsForASlowerOne) {
  const Writer fast = Writer().exchange(1, 1'000'000).compute(1).start(0).finish(0).compute(1);
  const Writer slow = Writer().exchange(0, 1'000'000).compute(30).start(0).finish(0).compute(1);

  const std::vector<double> ends = ends_of({fast.done(), slow.done()}, profile_of_ms());

  EXPECT_NEAR(ends[0], 32.1 * ms, 1e-9);
  EXPECT_NEAR(ends[1], 32.1 * ms, 1e-9);
}

TEST(Simulation, RoundsFollowEachOther) {
  const Writer step = Writer().exchange(1, 1'000'000, 3).compute(1).start(0).finish(0);
  const Writer other = Writer().exchange(0, 1'000'000, 3).compute(1).start(0).finish(0);

  const std::vector<double> ends = ends_of({step.done(), other.done()}, profile_of_ms());

  EXPECT_NEAR(ends[0], (1 + 3 * 1.1) * ms, 1e-9);
}

TEST(Simulation, HardwareMovesRoundsUnderLongKernels) {
  const Writer step = Writer().exchange(1, 1'000'000, 3).start(0).compute(50).finish(0);
  const Writer other = Writer().exchange(0, 1'000'000, 3).start(0).compute(50).finish(0);

  EXPECT_NEAR(ends_of({step.done(), other.done()}, profile_of_ms())[0], 50 * ms, 1e-9);
}

TEST(Simulation, WithoutHardwareRoundsMoveOnlyAfterKernels) {
  Profile profile = profile_of_ms();
  profile.between.moves_alone = false;
  profile.between.eager_bytes = 10'000'000;
  const Writer step = Writer().exchange(1, 1'000'000, 3).start(0).compute(50).finish(0);
  const Writer other = Writer().exchange(0, 1'000'000, 3).start(0).compute(50).finish(0);

  // The first round has arrived when the kernel ends; two more follow.
  EXPECT_NEAR(ends_of({step.done(), other.done()}, profile)[0], (50 + 2 * 1.1) * ms, 1e-9);
}

TEST(Simulation, LargeMessagesWaitUntilBothEndsLookAfterThem) {
  Profile profile = profile_of_ms();
  profile.between.moves_alone = false;
  const Writer step = Writer().exchange(1, 1'000'000).start(0).compute(5).compute(5).finish(0);
  const Writer other = Writer().exchange(0, 1'000'000).start(0).compute(5).compute(5).finish(0);

  // Both learn at 5 ms that the other wants to send, and at 10 ms that they may.
  EXPECT_NEAR(ends_of({step.done(), other.done()}, profile)[0], (10 + 1.1) * ms, 1e-9);
}

TEST(Simulation, InsideAMachineTheReceiverCopies) {
  Profile profile = profile_of_ms();
  profile.inside = {.latency_seconds = 0, .bytes_per_second = 1e9, .receiver_seconds_per_byte = 1e-9};
  const Writer step = Writer().exchange(1, 1'000'000).start(0).compute(5).finish(0);
  const Writer other = Writer().exchange(0, 1'000'000).start(0).compute(5).finish(0);
  const std::vector<RankSchedule> schedules{{0, 1, step.done()}, {1, 1, other.done()}};
  const Prices prices(profile, 1, 1);

  const Course course = Simulation(make_actors({schedules, {0, 1}, plan::Machines({2})}, prices), profile).run();

  EXPECT_NEAR(course.ends[0], 6 * ms, 1e-9);
}

TEST(Simulation, ARankThatWaitsTakesBytesInWhileOthersAreOnTheirWay) {
  Profile profile = profile_of_ms();
  profile.between.moves_alone = false;
  profile.between.eager_bytes = 100'000'000;
  profile.between.receiver_seconds_per_byte = 0.5e-9;
  const Writer waits = Writer().exchange(1, 20'000'000).start(0).finish(0);
  const Writer computes = Writer().exchange(0, 20'000'000).start(0).compute(50).finish(0);

  const std::vector<double> ends = ends_of({waits.done(), computes.done()}, profile);

  // All is taken in when the last byte has come; the other rank has it all before it when it looks.
  EXPECT_NEAR(ends[0], 20.1 * ms, 1e-9);
  EXPECT_NEAR(ends[1], (50 + 10) * ms, 1e-9);
}

TEST(Simulation, ASlowReceiverIsSlowerThanItsLink) {
  Profile profile = profile_of_ms();
  profile.between.moves_alone = false;
  profile.between.eager_bytes = 100'000'000;
  profile.between.receiver_seconds_per_byte = 2e-9;
  const Writer step = Writer().exchange(1, 20'000'000).start(0).finish(0);
  const Writer other = Writer().exchange(0, 20'000'000).start(0).finish(0);

  // The first bytes come at 0, and 20 MB take the processor 40 ms.
  EXPECT_NEAR(ends_of({step.done(), other.done()}, profile)[0], 40 * ms, 1e-9);
}

TEST(Simulation, RanksOfAMachineShareItsLink) {
  // Ranks 0 and 1 have a machine, 2 and 3 another; 0 talks to 2, 1 to 3.
  const Profile profile = profile_of_ms();
  const auto step = [](int peer) { return Writer().exchange(peer, 10'000'000).start(0).finish(0).done(); };
  const std::vector<RankSchedule> schedules{{0, 1, step(2)}, {1, 1, step(3)}, {2, 1, step(0)}, {3, 1, step(1)}};
  const Prices prices(profile, 1, 1);

  const Course course =
      Simulation(make_actors({schedules, {0, 1, 2, 3}, plan::Machines({2, 2})}, prices), profile).run();

  EXPECT_NEAR(course.ends[0], 20.1 * ms, 1e-9);
}

TEST(Simulation, OneRankOfAClassStandsForAll) {
  const Profile profile = profile_of_ms();
  const Writer step = Writer().exchange(1, 1'000'000, 2).compute(3).start(0).compute(1).finish(0);
  const std::vector<RankSchedule> schedules{{0, 4, step.done()}};
  const Prices prices(profile, 1, 1);

  const Course course = Simulation(make_actors({schedules, {0, 0, 0, 0}, {}}, prices), profile).run();

  EXPECT_EQ(course.forced, 0);
  EXPECT_NEAR(course.ends[0], (3 + 2 * 1.1) * ms, 1e-9);
}

}  // namespace
}  // namespace orthant::oracle
