#include "orthant/comm/alone.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/typed.hpp"

#include <gtest/gtest.h>

#include <array>

namespace orthant::comm {
namespace {

TEST(Alone, CollectivesHandBackWhatWasGiven) {
  Alone alone;
  std::array<int, 3> items{1, 2, 3};

  broadcast(alone, std::span(items), 0);
  alone.barrier();

  EXPECT_EQ(items, (std::array<int, 3>{1, 2, 3}));
  EXPECT_EQ(gather(alone, std::span<const int>(items), 0), (std::vector<std::vector<int>>{{1, 2, 3}}));
  EXPECT_EQ(all_gather(alone, 7), std::vector<int>{7});
  EXPECT_EQ(sum(alone, 2.5), 2.5);
  EXPECT_EQ(max(alone, std::int64_t{4}), 4);
  EXPECT_EQ(min(alone, 4), 4);
  const auto vote = alone.make_vote();
  for (const unsigned mine : {0U, 5U}) {
    vote->start(mine);
    EXPECT_EQ(vote->result(), mine);
  }
}

TEST(Alone, EmptyTransferIsDoneAtOnce) {
  Alone alone;
  const Message empty{.peer = 0, .bytes = 0};

  const std::unique_ptr<Transfer> transfer = alone.bind({&empty, 1}, {}, "halo");
  transfer->start();

  EXPECT_TRUE(transfer->test());
  transfer->wait();
  EXPECT_EQ(alone.traffic().at("halo"), Traffic{});
}

TEST(Alone, RefusesWhatHasNoPeer) {
  Alone alone;
  int item = 0;
  const std::array bad{message(1, std::span(&item, 1), 0), message(-1, std::span(&item, 1), 0),
                       message(0, std::span(&item, 1), 0), Message{.peer = 0, .data = &item, .bytes = -4}};

  for (const Message& one : bad) {
    EXPECT_THROW(alone.bind({&one, 1}, {}, "halo"), base::Error);
    EXPECT_THROW(alone.bind({}, {&one, 1}, "halo"), base::Error);
  }
  EXPECT_THROW(send(alone, std::span<const int>(&item, 1), 0), base::Error);
  EXPECT_THROW(receive(alone, std::span(&item, 1), 1), base::Error);
  EXPECT_THROW(broadcast(alone, std::span(&item, 1), 1), base::Error);
}

}  // namespace
}  // namespace orthant::comm
