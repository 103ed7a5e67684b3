#include "orthant/train/stop_time.hpp"

#include "tests/data/temporary.hpp"

#include <cstdlib>

namespace orthant::train {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::system_clock;

TEST(StopTime, IsReadAsPeopleWriteIt) {
  const WallTime noon = parse_stop_time("2026-11-30T12:00", {});
  EXPECT_EQ(parse_stop_time("2026-11-30T12:00:30", {}) - noon, std::chrono::seconds(30));
  EXPECT_EQ(parse_stop_time("13:30", noon) - noon, minutes(90));
  EXPECT_EQ(parse_stop_time("11:00", noon) - noon, hours(23));
  EXPECT_EQ(parse_stop_time("12:00", noon) - noon, hours(24));
  for (const char* text : {"", "soon", "25:00", "12:00x", "2026-13-01T00:00", "12"})
    test::expect_error(base::Exit::usage, "is no time", [&] { parse_stop_time(text, noon); });
}

TEST(StopTime, OfSlurmIsInTheEnvironment) {
  unsetenv("SLURM_JOB_END_TIME");
  EXPECT_FALSE(job_end_from_environment());
  setenv("SLURM_JOB_END_TIME", "1800000000", 1);
  EXPECT_EQ(job_end_from_environment(), system_clock::from_time_t(1'800'000'000));
  setenv("SLURM_JOB_END_TIME", "tomorrow", 1);
  EXPECT_FALSE(job_end_from_environment());
  unsetenv("SLURM_JOB_END_TIME");
}

TEST(StopTime, LeavesTimeForAStepAndTwoCheckpoints) {
  const WallTime end = system_clock::from_time_t(1'800'000'000);
  const Pace pace{.step_seconds = 5, .checkpoint_seconds = 10};
  EXPECT_FALSE(must_stop(end, end - milliseconds(27'100), pace));
  EXPECT_TRUE(must_stop(end, end - milliseconds(26'900), pace));
  EXPECT_TRUE(must_stop(end, end + hours(1), pace));
}

}  // namespace
}  // namespace orthant::train
