#include "orthant/calibrate/profile_file.hpp"

#include "orthant/base/error.hpp"
#include "tests/data/temporary.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace orthant::calibrate {
namespace {

Findings findings(int ranks_per_machine, const std::string& task) {
  Findings found;
  found.setting = {.threads = 1,
                   .ranks_per_machine = ranks_per_machine,
                   .flops_per_second = 1e11,
                   .memory_bytes_per_second = 1e10,
                   .tasks = {{task, {.features = {.family = "conv", .extents = {8}}, .seconds = 0.5}}}};
  found.memory_bytes = 8 << 20;
  found.cores = 2;
  found.file_bytes_per_second = 1e9;
  return found;
}

oracle::Link link(double speed) {
  return {.latency_seconds = 1e-6, .bytes_per_second = speed, .source = "measured by orthant calibrate"};
}

TEST(ProfileFile, JoinsWhatSeveralCallsMeasured) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("deep/profile.json");
  for (const std::string task : {"a", "b"}) {
    oracle::Profile profile = open_profile(path, "processor");
    merge(profile, findings(1, task));
    merge(profile, findings(2, task));
    store_profile(profile, path);
  }
  const oracle::Profile profile = open_profile(path, "processor");
  ASSERT_EQ(profile.settings.size(), 2U);
  EXPECT_EQ(find_setting(profile, 1, 2)->tasks.size(), 2U);
  EXPECT_EQ(find_setting(profile, 4, 2), nullptr);
}

TEST(ProfileFile, OfAnotherProcessorIsNotAddedTo) {
  const test::TemporaryDirectory folder;
  oracle::Profile profile = open_profile(folder.file("profile.json"), "one");
  merge(profile, findings(1, "a"));
  store_profile(profile, folder.file("profile.json"));
  test::expect_error(base::Exit::bad_data, "is of 'one', but this is 'another'",
                     [&] { open_profile(folder.file("profile.json"), "another"); });
}

TEST(ProfileFile, LinksThatWereNotMeasuredSaySo) {
  oracle::Profile profile = open_profile("nowhere/profile.json", "processor");
  merge(profile, findings(1, "a"));
  EXPECT_NE(profile.between.source.find("not measured"), std::string::npos);

  Findings inside = findings(2, "a");
  inside.inside = link(4e9);
  merge(profile, inside);
  EXPECT_DOUBLE_EQ(profile.between.bytes_per_second, 4e9);
  EXPECT_GE(profile.between.error, 0.5);

  Findings between = findings(1, "a");
  between.between = link(1e9);
  merge(profile, between);
  EXPECT_DOUBLE_EQ(profile.inside.bytes_per_second, 4e9);
  EXPECT_DOUBLE_EQ(profile.between.bytes_per_second, 1e9);
}

TEST(ProfileFile, IsWhereTheUserSays) {
  setenv("ORTHANT_PROFILE", "/somewhere/else.json", 1);
  EXPECT_EQ(profile_path(), "/somewhere/else.json");
  unsetenv("ORTHANT_PROFILE");
  EXPECT_NE(profile_path(), "/somewhere/else.json");
}

}  // namespace
}  // namespace orthant::calibrate
