#include "orthant/engine/memory.hpp"

#include "orthant/comm/alone.hpp"
#include "tests/data/temporary.hpp"
#include "tests/support/thread_comm.hpp"

namespace orthant::engine {
namespace {

using base::Exit;

TEST(Memory, SomethingIsAvailableAndHeld) {
  EXPECT_GT(available_memory_bytes(), 1 << 20);
  EXPECT_GT(peak_memory_bytes(), 1 << 20);
}

TEST(Memory, RefusesWhatDoesNotFit) {
  check_memory(1);

  test::expect_error(Exit::does_not_fit, "the step needs 1048576.00 GiB but ",
                     [] { check_memory(std::int64_t{1} << 50); });
}

TEST(Memory, OneRankIsTheWholeMachine) {
  comm::Alone alone;
  check_machine_memory(alone, {.bytes = 1});

  test::expect_error(Exit::does_not_fit, "the step needs 1048576.00 GiB but ",
                     [&] { check_machine_memory(alone, {.bytes = std::int64_t{1} << 50}); });
}

/// Three ranks that take so much each.
void check_on_three(const MemoryNeed& need) {
  test::run_threads(3, [&](comm::Comm& comm) { check_machine_memory(comm, need); });
}

TEST(Memory, RanksOfAMachineAreAddedUp) {
  // Memory that is free changes while the test runs, so the numbers keep away from the limit.
  const std::int64_t half = available_memory_bytes() / 2;
  check_memory(half);
  check_on_three({.bytes = half / 3});

  test::expect_error(Exit::does_not_fit, "3 ranks on host '", [&] { check_on_three({.bytes = half}); });
  test::expect_error(Exit::does_not_fit, " GiB together but ", [&] { check_on_three({.bytes = half}); });
}

TEST(Memory, WhatRanksHaveInCommonIsCountedOnce) {
  const std::int64_t available = available_memory_bytes();
  check_on_three({.bytes = available / 2, .common_bytes = available / 2 - 1000});

  test::expect_error(Exit::does_not_fit, "3 ranks on host '",
                     [&] { check_on_three({.bytes = 2 * available, .common_bytes = 2 * available}); });
}

}  // namespace
}  // namespace orthant::engine
