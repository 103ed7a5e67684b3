#include "orthant/comm/machine.hpp"

#include "orthant/comm/affinity.hpp"
#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>

#include <mutex>

namespace orthant::comm {
namespace {

TEST(Machine, RanksOfOneMachineKnowEachOther) {
  test::run_threads(3, [](Comm& comm) {
    if (ranks_of_machine(comm) != std::vector<int>{0, 1, 2}) throw std::runtime_error("not all ranks are here");
  });
}

/// The shares of ranks that may run on these processors (threads have masks of their own).
std::vector<ProcessorShare> shares(const std::vector<std::vector<int>>& allowed) {
  std::vector<ProcessorShare> found(allowed.size());
  test::run_threads(static_cast<int>(allowed.size()), [&](Comm& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    bind_to(allowed[rank]);
    found[rank] = processor_share(comm);
  });
  return found;
}

TEST(Machine, ProcessorsAreDividedAmongTheRanksThatMayUseThem) {
  const std::vector<int> all = allowed_processors();
  if (all.size() < 2) return;
  const std::vector<int> first{all[0]};
  const std::vector<int> both{all[0], all[1]};

  for (const ProcessorShare& share : shares({both, both})) {
    EXPECT_EQ(share.ranks, 2);
    EXPECT_EQ(share.threads, 1);
    EXPECT_FALSE(share.is_bound);
    EXPECT_FALSE(share.is_less_than_one);
  }
  const auto bound = shares({first, {all[1]}});
  EXPECT_EQ(bound[1].index, 1);
  EXPECT_EQ(bound[1].threads, 1);
  EXPECT_TRUE(bound[1].is_bound);
  EXPECT_EQ(shares({both})[0].threads, 2);
  // More ranks than processors have one thread each, and of two ranks one may be bound to a part.
  EXPECT_EQ(shares({both, both, both})[2].threads, 1);
  EXPECT_TRUE(shares({both, both, both})[2].is_less_than_one);
  EXPECT_EQ(shares({first, both})[1].threads, 1);
}

TEST(Machine, RanksAreBoundToPlacesOfTheirOwnIfAllFit) {
  const std::vector<int> all = allowed_processors();
  const auto cores = static_cast<int>(allowed_cores().size());
  std::mutex mutex;
  std::vector<int> taken;
  test::run_threads(cores, [&](Comm& comm) {
    bind_to_share(processor_share(comm), 1);
    const std::lock_guard lock(mutex);
    for (const int processor : allowed_processors()) taken.push_back(processor);
  });
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, all);

  test::run_threads(cores, [&](Comm& comm) {
    bind_to_share(processor_share(comm), static_cast<int>(all.size()) + 1);
    if (allowed_processors() != all) throw std::runtime_error("bound, although the ranks do not fit");
  });
}

TEST(Machine, RangesOfProcessorsAreShort) {
  EXPECT_EQ(ranges_text(std::vector<int>{0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(ranges_text({}), "");
}

}  // namespace
}  // namespace orthant::comm
