#include "orthant/comm/watchdog.hpp"

#include "orthant/base/error.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace orthant::comm {
namespace {

using std::chrono::milliseconds;

Watchdog::Options options(int timeout_ms) {
  return {
      .rank = 3, .timeout = milliseconds(timeout_ms), .end = [](base::Exit code) { _exit(static_cast<int>(code)); }};
}

class Stuck final : public Transfer {
 public:
  void start() override {}
  bool test() override { return false; }
  void wait() override { std::this_thread::sleep_for(std::chrono::hours(1)); }
  [[nodiscard]] std::string outstanding() const override { return "nothing from rank 1"; }
};

class WatchdogDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(WatchdogDeathTest, LongWaitEndsTheJobAndIsNamed) {
  const auto wait = [] {
    Watchdog watchdog(options(200));
    Stuck stuck;
    const Waiting outer(&watchdog, "conv3.halo");
    const Waiting inner(&watchdog, "halo", &stuck);
    stuck.wait();
  };

  EXPECT_EXIT(wait(), testing::ExitedWithCode(86),
              "error: rank 3: waited 0 s in conv3.halo, halo: nothing from rank 1; .*ORTHANT_WATCHDOG_SECONDS");
}

TEST_F(WatchdogDeathTest, TerminationSignalEndsTheProcess) {
  const auto wait = [] {
    Watchdog watchdog(options(60'000));
    std::raise(SIGTERM);
    std::this_thread::sleep_for(std::chrono::hours(1));
  };

  EXPECT_EXIT(wait(), testing::ExitedWithCode(143), "");
}

/// Where others keep the processors busy, 5 ms may become 100, but hardly a second.
TEST(Watchdog, ManyShortWaitsAreNoLongOne) {
  Watchdog watchdog(options(1000));
  const auto end = std::chrono::steady_clock::now() + milliseconds(2500);
  while (std::chrono::steady_clock::now() < end) {
    const Waiting waiting(&watchdog, "a turn");
    std::this_thread::sleep_for(milliseconds(5));
  }
}

TEST(Watchdog, ComputingIsNoWaiting) {
  Watchdog watchdog(options(1000));
  { const Waiting waiting(&watchdog, "a turn"); }
  std::this_thread::sleep_for(milliseconds(2000));
}

TEST(Watchdog, NestedDeeperThanItRemembersIsFine) {
  Watchdog watchdog(options(60'000));
  for (int i = 0; i < 10; ++i) watchdog.enter("a wait");
  for (int i = 0; i < 10; ++i) watchdog.leave();
}

TEST(Watchdog, NoneIsFine) { const Waiting waiting(nullptr, "a turn"); }

TEST(WatchdogTimeout, ComesFromTheEnvironment) {
  unsetenv("ORTHANT_WATCHDOG_SECONDS");
  EXPECT_EQ(watchdog_timeout(), std::chrono::seconds(300));
  setenv("ORTHANT_WATCHDOG_SECONDS", "2.5", 1);
  EXPECT_EQ(watchdog_timeout(), milliseconds(2500));
  for (const char* bad : {"0", "-1", "x", "5x", "nan", "1e30"}) {
    setenv("ORTHANT_WATCHDOG_SECONDS", bad, 1);
    EXPECT_THROW(watchdog_timeout(), base::Error) << bad;
  }
  unsetenv("ORTHANT_WATCHDOG_SECONDS");
}

}  // namespace
}  // namespace orthant::comm
