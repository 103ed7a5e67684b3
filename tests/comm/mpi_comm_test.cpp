#include "orthant/comm/mpi_comm.hpp"

#include "orthant/comm/typed.hpp"
#include "tests/support/mpi_main.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <numeric>

namespace orthant::comm {
namespace {

using test::ranks;

TEST(MpiComm, BroadcastReachesAll) {
  for (int root = 0; root < ranks().size(); ++root) {
    std::vector<int> items(1201, ranks().rank() == root ? 7 + root : 0);
    broadcast(ranks(), std::span(items), root);
    EXPECT_EQ(items, std::vector<int>(1201, 7 + root));
  }
}

TEST(MpiComm, GatherHasPartsOfAnySize) {
  const auto part = [](int rank) {
    std::vector<short> items(static_cast<std::size_t>(rank * 700));
    std::iota(items.begin(), items.end(), static_cast<short>(rank));
    return items;
  };
  for (int root = 0; root < ranks().size(); ++root) {
    const std::vector<short> mine = part(ranks().rank());
    const std::vector<std::vector<short>> all = gather(ranks(), std::span(mine), root);

    EXPECT_EQ(all.size(), ranks().rank() == root ? static_cast<std::size_t>(ranks().size()) : 0U);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], part(static_cast<int>(i)));
  }
}

TEST(MpiComm, ReductionsAreTheSameEverywhere) {
  const int size = ranks().size();
  EXPECT_EQ(sum(ranks(), std::int64_t{1} << 40U), std::int64_t{size} << 40U);
  EXPECT_EQ(max(ranks(), 0.5 * ranks().rank()), 0.5 * (size - 1));
  EXPECT_EQ(min(ranks(), -ranks().rank()), 1 - size);

  double in_order = 0;
  for (int i = 0; i < size; ++i) in_order += std::ldexp(1.0, 60 * (i % 2)) * (i % 3 - 1);
  EXPECT_EQ(sum(ranks(), std::ldexp(1.0, 60 * (ranks().rank() % 2)) * (ranks().rank() % 3 - 1)), in_order);
}

/// More items than a message may have bytes.
TEST(MpiComm, ReductionsOfManyItemsAreTakenItemByItem) {
  Comm& comm = ranks();
  const std::int64_t size = comm.size();
  std::vector<std::int64_t> whole(777);
  std::iota(whole.begin(), whole.end(), 1000 * comm.rank());
  std::vector<double> halves(whole.begin(), whole.end());
  for (double& one : halves) one += 0.5;

  std::vector<std::int64_t> sums = whole;
  comm.all_reduce(sums, Reduction::sum);
  comm.all_reduce(whole, Reduction::min);
  comm.all_reduce(halves, Reduction::max);

  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto item = static_cast<std::int64_t>(i);
    EXPECT_EQ(sums[i], size * item + 1000 * (size * (size - 1) / 2));
    EXPECT_EQ(whole[i], item);
    EXPECT_EQ(halves[i], static_cast<double>(item + 1000 * (size - 1)) + 0.5);
  }
}

TEST(MpiComm, LargestTagCanBeUsed) {
  Comm& comm = ranks();
  EXPECT_GE(comm.largest_tag(), 32767);
  if (comm.size() == 1) return;
  int sent = comm.rank();
  int received = -1;
  const Message send = message((comm.rank() + 1) % comm.size(), std::span(&sent, 1), comm.largest_tag());
  const Message receive =
      message((comm.rank() + comm.size() - 1) % comm.size(), std::span(&received, 1), comm.largest_tag());

  const auto transfer = comm.bind({&send, 1}, {&receive, 1}, "ring");
  transfer->start();
  transfer->wait();

  EXPECT_EQ(received, receive.peer);
}

TEST(MpiComm, OneVoiceDecidesAVote) {
  Comm& comm = ranks();
  const auto vote = comm.make_vote();
  for (int speaker = -1; speaker < comm.size(); ++speaker) {
    vote->start(comm.rank() == speaker ? 1U << speaker : 0);
    EXPECT_EQ(sum(comm, 1), comm.size());
    EXPECT_EQ(vote->result(), speaker >= 0 ? 1U << speaker : 0U);
  }
}

/// Rank 0 gets the result while the others make nothing but progress, as an engine does between its steps. Otherwise it
/// would wait for them, and they for what it writes.
TEST(MpiComm, ProgressMovesVotesAlong) {
  Comm& comm = ranks();
  if (comm.size() == 1) return;
  constexpr std::size_t bytes = 1 << 16;
  auto* memory =
      static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  {
    const auto pages = comm.share({memory, bytes});
    const std::vector<SharedPages::Place> places = all_gather(comm, pages->place_of(memory, bytes));
    const SharedView view = comm.view(0, places.front());
    const auto vote = comm.make_vote();

    vote->start(comm.rank() == 1 ? 1 : 0);
    if (comm.rank() == 0) {
      EXPECT_TRUE(vote->result());
      *static_cast<volatile std::byte*>(memory) = std::byte{1};
    } else {
      while (*static_cast<const volatile std::byte*>(view.data()) == std::byte{0}) comm.progress();
      EXPECT_TRUE(vote->result());
    }
    comm.barrier();
  }
  munmap(memory, bytes);
}

}  // namespace
}  // namespace orthant::comm
