#include "orthant/base/error.hpp"
#include "orthant/base/random.hpp"
#include "orthant/comm/shared_pages.hpp"
#include "orthant/comm/typed.hpp"
#include "tests/support/mpi_main.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>

namespace {

std::atomic<std::int64_t> allocations{0};

}  // namespace

// Inlined, they look like a mismatch of new and free to GCC 12.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

namespace orthant::comm {
namespace {

using test::ranks;

/// Bytes that `from` sends to `to` in one turn: odd sizes, some zero, some of several pieces.
std::int64_t size_of(int from, int to) {
  constexpr std::array<std::int64_t, 8> sizes{1, 0, 999, 1000, 1001, 7, 3333, 2000};
  return sizes[static_cast<std::size_t>(from * 3 + to * 5) % sizes.size()];
}

std::byte item(int turn, int from, int to, std::size_t index) {
  return static_cast<std::byte>(base::keyed(static_cast<std::uint64_t>(turn * 10'000 + from * 100 + to), index));
}

/// Every rank to every other, twice with the same tag.
struct AllToAll {
  explicit AllToAll(const char* kind) {
    Comm& comm = ranks();
    for (int copy = 0; copy < 2; ++copy) {
      for (int peer = 0; peer < comm.size(); ++peer) {
        if (peer == comm.rank()) continue;
        peers.push_back(peer);
        sent.emplace_back(static_cast<std::size_t>(size_of(comm.rank(), peer)));
        received.emplace_back(static_cast<std::size_t>(size_of(peer, comm.rank())));
      }
    }
    std::vector<Message> sends;
    std::vector<Message> receives;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      sends.push_back(message(peers[i], std::span(sent[i]), 3));
      receives.push_back(message(peers[i], std::span(received[i]), 3));
      if (sent[i].empty()) continue;
      ++expected.messages;
      expected.bytes += static_cast<std::int64_t>(sent[i].size());
    }
    transfer = comm.bind(sends, receives, kind);
  }

  void fill(int turn) {
    for (std::size_t i = 0; i < peers.size(); ++i) {
      for (std::size_t k = 0; k < sent[i].size(); ++k)
        sent[i][k] = item(turn + (i < peers.size() / 2 ? 0 : 50), ranks().rank(), peers[i], k);
    }
  }

  void check(int turn) const {
    for (std::size_t i = 0; i < peers.size(); ++i) {
      std::size_t wrong = 0;
      for (std::size_t k = 0; k < received[i].size(); ++k)
        wrong += received[i][k] != item(turn + (i < peers.size() / 2 ? 0 : 50), peers[i], ranks().rank(), k) ? 1 : 0;
      EXPECT_EQ(wrong, 0U) << "turn " << turn << " from " << peers[i];
    }
  }

  std::vector<int> peers;
  std::vector<std::vector<std::byte>> sent, received;
  Traffic expected;  ///< of one turn
  std::unique_ptr<Transfer> transfer;
};

TEST(Exchange, AllToAllAgainAndAgain) {
  AllToAll all("again");
  for (int turn = 0; turn < 20; ++turn) {
    all.fill(turn);
    all.transfer->start();
    if (turn % 2 == 0) {
      all.transfer->wait();
    } else {
      while (!all.transfer->test()) ranks().progress();
    }
    all.check(turn);
    EXPECT_EQ(all.transfer->outstanding(), "");
  }

  EXPECT_EQ(ranks().traffic().at("again"),
            (Traffic{.messages = 20 * all.expected.messages, .bytes = 20 * all.expected.bytes}));
}

TEST(Exchange, SteadyTransfersAllocateNothing) {
  AllToAll all("steady");
  const std::int64_t before = allocations;

  for (int turn = 0; turn < 20; ++turn) {
    all.transfer->start();
    if (turn % 2 == 0) {
      all.transfer->wait();
    } else {
      while (!all.transfer->test()) ranks().progress();
    }
  }

  EXPECT_EQ(allocations - before, 0);
}

TEST(Exchange, TwoTransfersInFlightMatchInTheOrderOfTheirStarts) {
  AllToAll first("first");
  AllToAll second("second");
  for (int turn = 0; turn < 5; ++turn) {
    first.fill(turn);
    second.fill(100 + turn);
    first.transfer->start();
    second.transfer->start();
    second.transfer->wait();
    first.transfer->wait();
    first.check(turn);
    second.check(100 + turn);
  }
  EXPECT_EQ(ranks().traffic().at("first"), ranks().traffic().at("second"));
}

TEST(Exchange, LargeMessagesArrive) {
  Comm& comm = ranks();
  if (comm.size() == 1) return;
  std::vector<int> sent(1'000'003);
  std::vector<int> received(sent.size());
  std::iota(sent.begin(), sent.end(), comm.rank());
  const Message send = message((comm.rank() + 1) % comm.size(), std::span(sent), 0);
  const Message receive = message((comm.rank() + comm.size() - 1) % comm.size(), std::span(received), 0);

  const std::unique_ptr<Transfer> transfer = comm.bind({&send, 1}, {&receive, 1}, "large");
  transfer->start();
  transfer->wait();

  EXPECT_EQ(received.front(), receive.peer);
  EXPECT_EQ(received.back(), receive.peer + 1'000'002);
  EXPECT_EQ(comm.traffic().at("large"), (Traffic{.messages = 1, .bytes = 4 * 1'000'003}));
}

/// Memory to share, as an arena's is.
struct Pages {
  static constexpr std::size_t bytes = 1 << 20;
  std::byte* memory =
      static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::unique_ptr<SharedPages> pages = ranks().share({memory, bytes});

  Pages() = default;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(memory, bytes); }

  [[nodiscard]] std::span<float> floats(std::size_t first, std::size_t count) const {
    return {reinterpret_cast<float*>(memory) + first, count};
  }
  [[nodiscard]] static Message announced(int peer, std::span<float> items) {
    Message one = message(peer, items, 4);
    one.announced = true;
    return one;
  }
  /// Collective. What another rank has at the same place, to read.
  [[nodiscard]] SharedView view(int peer, std::span<const float> items) const {
    const std::vector<SharedPages::Place> all =
        all_gather(ranks(), pages->place_of(items.data(), static_cast<std::int64_t>(items.size_bytes())));
    return ranks().view(peer, all[static_cast<std::size_t>(peer)]);
  }
};

float item_of(int turn, int rank, std::size_t index) {
  return static_cast<float>(turn * 7 + rank) + 0.001F * static_cast<float>(index);
}

TEST(Exchange, SharedMemoryIsThereForTheRanksOfAMachine) {
  const Pages pages;
  EXPECT_EQ(pages.pages != nullptr, ranks().size() > 1);
  EXPECT_TRUE(std::all_of(pages.memory, pages.memory + Pages::bytes, [](std::byte b) { return b == std::byte{0}; }));
}

TEST(Exchange, RanksOfAMachineShareMemory) {
  std::vector<int> all(static_cast<std::size_t>(ranks().size()));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(ranks().sharing_ranks(), all);
}

/// Each rank announces what it wrote, and the others read it in its memory.
TEST(Exchange, AnnouncedMessagesAreReadWhereTheyAre) {
  Comm& comm = ranks();
  if (comm.size() == 1) return;
  const Pages pages;
  // Odd places; sizes from one float to more than a page.
  for (const std::size_t count : {1, 1023, 16385, 100'003}) {
    const std::span<float> mine = pages.floats(7, count);
    std::vector<Message> sends;
    std::vector<Message> receives;
    std::vector<SharedView> views;
    for (int peer = 0; peer < comm.size(); ++peer) {
      SharedView view = pages.view(peer, mine);
      if (peer == comm.rank()) continue;
      views.push_back(std::move(view));
      sends.push_back(Pages::announced(peer, mine));
      receives.push_back(Pages::announced(peer, mine));
      receives.back().data = nullptr;
    }
    const std::string kind = "announced " + std::to_string(count);
    const auto transfer = comm.bind(sends, receives, kind.c_str());
    std::int64_t before = 0;
    for (int turn = 0; turn < 6; ++turn) {
      comm.barrier();  // all have read what was there
      if (turn == 2) before = allocations;
      for (std::size_t i = 0; i < count; ++i) mine[i] = item_of(turn, comm.rank(), i);
      transfer->start();
      if (turn % 2 == 0) {
        transfer->wait();
      } else {
        while (!transfer->test()) comm.progress();
      }
      for (std::size_t k = 0; k < receives.size(); ++k) {
        const auto* items = reinterpret_cast<const float*>(views[k].data());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) wrong += items[i] == item_of(turn, receives[k].peer, i) ? 0 : 1;
        EXPECT_EQ(wrong, 0U) << count << " floats from rank " << receives[k].peer << " in turn " << turn;
      }
      EXPECT_EQ(transfer->outstanding(), "");
    }
    EXPECT_EQ(allocations - before, 0);
    const auto messages = 6 * static_cast<std::int64_t>(sends.size());
    EXPECT_EQ(comm.traffic().at(kind), (Traffic{.messages = messages,
                                                .bytes = 0,
                                                .announced_bytes = 4 * messages * static_cast<std::int64_t>(count)}));
    comm.barrier();
  }
}

/// What the sender writes later is seen without a message: a view is the sender's memory, not a copy.
TEST(Exchange, ViewsAreTheMemoryOfAnotherRank) {
  Comm& comm = ranks();
  if (comm.size() == 1) return;
  const Pages pages;
  const std::span<float> mine = pages.floats(5, 50'000);
  std::vector<SharedView> views;
  for (int peer = 0; peer < comm.size(); ++peer) views.push_back(pages.view(peer, mine));
  for (int turn = 0; turn < 2; ++turn) {
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = item_of(turn, comm.rank(), i);
    comm.barrier();
    for (int peer = 0; peer < comm.size(); ++peer) {
      const auto* items = reinterpret_cast<const float*>(views[static_cast<std::size_t>(peer)].data());
      std::size_t stale = 0;
      for (std::size_t i = 0; i < mine.size(); ++i) stale += items[i] == item_of(turn, peer, i) ? 0 : 1;
      EXPECT_EQ(stale, 0U) << "from rank " << peer;
    }
    comm.barrier();
  }
}

TEST(Exchange, AnnouncedSizesThatDifferAreFound) {
  Comm& comm = ranks();
  std::vector<float> items(30'000);
  if (comm.size() > 1 && comm.rank() == 0) {
    const Message one = Pages::announced(1, std::span(items).first(20'000));
    const auto transfer = comm.bind({&one, 1}, {}, "announced");
    transfer->start();
    transfer->wait();
  } else if (comm.rank() == 1) {
    const Message one = Pages::announced(0, items);
    const auto transfer = comm.bind({}, {&one, 1}, "announced");
    transfer->start();
    EXPECT_THROW(transfer->wait(), base::Error);
  }
  comm.barrier();
}

TEST(Exchange, RanksCanHaveMemoryInCommon) {
  Comm& comm = ranks();
  const std::vector<int> all = comm.sharing_ranks();
  if (comm.size() == 1) return;
  const Pages pages;
  const auto count = static_cast<std::size_t>(comm.size());
  for (float& one : pages.floats(0, 4096)) one = static_cast<float>(comm.rank());
  pages.floats(8192, 1)[0] = static_cast<float>(comm.rank());
  comm.barrier();

  const std::span<std::byte> common = std::as_writable_bytes(pages.floats(0, 4096));
  const auto places = all_gather(comm, pages.pages->place_of(common.data(), static_cast<std::int64_t>(common.size())));
  if (comm.rank() > 0) comm.map(0, places.front(), common);
  comm.barrier();

  EXPECT_EQ(pages.floats(4095, 1)[0], 0);                                // the first rank's
  EXPECT_EQ(pages.floats(8192, 1)[0], static_cast<float>(comm.rank()));  // a page of its own
  comm.barrier();
  // Whatever one rank writes is there for all of them, without any message.
  for (const int writer : all) {
    for (std::size_t i = 0; i < 4096 && writer == comm.rank(); ++i) pages.floats(i, 1)[0] = item_of(3, writer, i);
    comm.barrier();
    std::size_t stale = 0;
    for (std::size_t i = 0; i < 4096; ++i) stale += pages.floats(i, 1)[0] == item_of(3, writer, i) ? 0 : 1;
    EXPECT_EQ(stale, 0U) << "what rank " << writer << " wrote";
    comm.barrier();
  }
  std::vector<Message> sends;
  std::vector<Message> receives;
  const auto mine = static_cast<std::size_t>(comm.rank());
  for (const int peer : all) {
    if (peer == comm.rank()) continue;
    sends.push_back(Pages::announced(peer, pages.floats(mine, 1)));
    receives.push_back(Pages::announced(peer, pages.floats(static_cast<std::size_t>(peer), 1)));
  }
  const auto transfer = comm.bind(sends, receives, "common");
  for (int turn = 1; turn < 20; ++turn) {
    pages.floats(mine, 1)[0] = item_of(turn, comm.rank(), 0);
    transfer->start();
    transfer->wait();
    for (std::size_t rank = 0; rank < count; ++rank)
      EXPECT_EQ(pages.floats(rank, 1)[0], item_of(turn, static_cast<int>(rank), 0));
    comm.barrier();
  }
  EXPECT_EQ(comm.traffic().at("common").announced_bytes, 19 * 4 * (comm.size() - 1));
  EXPECT_EQ(comm.traffic().at("common").bytes, 0);
}

TEST(Exchange, BlockingMessagesDoNotMatchBoundOnes) {
  Comm& comm = ranks();
  if (comm.size() == 1) return;
  std::vector<int> bound(2, comm.rank());
  std::vector<int> blocking(501, 100 + comm.rank());
  const Message first = message(1, std::span(bound), 0);
  const Message second = message(0, std::span(bound), 0);
  if (comm.rank() == 0) {
    const auto transfer = comm.bind({&first, 1}, {}, "bound");
    transfer->start();
    send(comm, std::span<const int>(blocking), 1);
    transfer->wait();
  } else if (comm.rank() == 1) {
    receive(comm, std::span(blocking), 0);
    const auto transfer = comm.bind({}, {&second, 1}, "bound");
    transfer->start();
    transfer->wait();
    EXPECT_EQ(bound, std::vector<int>(2, 0));
    EXPECT_EQ(blocking, std::vector<int>(501, 100));
  }
  comm.barrier();
}

TEST(Exchange, SizesThatDifferAreFound) {
  Comm& comm = ranks();
  if (comm.size() == 1) return;
  for (const std::size_t expected : {5, 3}) {
    std::vector<char> items(comm.rank() == 0 ? 4 : expected);
    const Message one = message(1 - comm.rank(), std::span(items), 8);
    if (comm.rank() == 0) {
      const auto transfer = comm.bind({&one, 1}, {}, "halo");
      transfer->start();
      transfer->wait();
    } else if (comm.rank() == 1) {
      const auto transfer = comm.bind({}, {&one, 1}, "halo");
      transfer->start();
      EXPECT_THROW(transfer->wait(), base::Error);
    }
    comm.barrier();
  }
}

TEST(Exchange, RefusesWhatNobodyCouldDeliver) {
  int item = 0;
  const std::array bad{message(ranks().size(), std::span(&item, 1), 0), message(-1, std::span(&item, 1), 0),
                       message(ranks().rank(), std::span(&item, 1), 0)};
  for (const Message& one : bad) EXPECT_THROW(ranks().bind({&one, 1}, {}, "halo"), base::Error);
}

}  // namespace
}  // namespace orthant::comm
