#include "orthant/data/io/threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace orthant::data::io {
namespace {

TEST(Threads, EveryIndexIsVisitedOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const std::int64_t count : {0, 1, 5, 100}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      std::atomic<int> wrong{0};
      in_threads(threads, count, [&](std::int64_t begin, std::int64_t end, int thread) {
        if (begin >= end || thread < 0 || thread >= threads) ++wrong;
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });

      EXPECT_EQ(wrong, 0);
      for (const std::atomic<int>& times : visits) EXPECT_EQ(times, 1);
    }
  }
}

}  // namespace
}  // namespace orthant::data::io
