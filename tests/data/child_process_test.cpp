#include "orthant/data/io/child_process.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <csignal>
#include <cstdlib>
#include <vector>

namespace orthant {
namespace {

using data::io::ChildResult;

TEST(ChildProcess, GivesALinePerItem) {
  const std::vector<ChildResult> results =
      data::io::run_in_child(1000, [](std::size_t i) { return std::string(i % 300, 'x') + std::to_string(i); });

  ASSERT_EQ(results.size(), 1000U);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].text, std::string(i % 300, 'x') + std::to_string(i));
    EXPECT_EQ(results[i].death, "");
  }
}

TEST(ChildProcess, ADeathCostsOneItem) {
  const std::vector<ChildResult> results = data::io::run_in_child(5, [](std::size_t i) {
    if (i == 1) std::raise(SIGSEGV);
    if (i == 2) std::abort();
    if (i == 4) std::_Exit(3);
    return std::to_string(i);
  });

  ASSERT_EQ(results.size(), 5U);
  EXPECT_EQ(results[0].text, "0");
  EXPECT_EQ(results[1].death, "signal 11");
  EXPECT_EQ(results[2].death, "signal 6");
  EXPECT_EQ(results[3].text, "3");
  EXPECT_EQ(results[4].death, "exit code 3");
}

TEST(ChildProcess, LimitsMemoryAndTime) {
  const std::vector<ChildResult> results = data::io::run_in_child(
      2,
      [](std::size_t i) {
        if (i == 0) {
          const std::size_t bytes = std::size_t{3} << 30;
          void* much = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          return std::string(much == MAP_FAILED ? "no" : "yes");
        }
        for (std::uint64_t count = 1;; count *= 3) asm volatile("" : : "r"(count));
      },
      {.memory_bytes = std::int64_t{1} << 30, .cpu_seconds = 0});

  EXPECT_EQ(results[0].text, "no");
  EXPECT_EQ(results[1].death, "it took too long");
}

}  // namespace
}  // namespace orthant
