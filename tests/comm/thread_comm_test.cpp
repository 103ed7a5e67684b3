#include "tests/support/thread_comm.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/typed.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orthant::test {
namespace {

using comm::Comm;
using comm::message;
using comm::Message;
using comm::Transfer;

/// The message of the Error that `body` ends in.
std::string error_of(int ranks, const std::function<void(Comm&)>& body, const ThreadCommOptions& options = {}) {
  try {
    run_threads(ranks, body, options);
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(ThreadComm, RingHandsValuesOn) {
  for (const int ranks : {2, 3, 5, 8}) {
    run_threads(ranks, [&](Comm& comm) {
      float mine = 0;
      float other = 0;
      const Message send = message((comm.rank() + 1) % ranks, std::span(&mine, 1), 4);
      const Message receive = message((comm.rank() + ranks - 1) % ranks, std::span(&other, 1), 4);
      const std::unique_ptr<Transfer> transfer = comm.bind({&send, 1}, {&receive, 1}, "ring");
      for (int turn = 0; turn < 10; ++turn) {
        mine = static_cast<float>(100 * turn + comm.rank());
        transfer->start();
        EXPECT_TRUE(std::isnan(other));
        if (turn % 2 == 0) {
          while (!transfer->test()) comm.progress();
        } else {
          transfer->wait();
        }
        EXPECT_EQ(other, static_cast<float>(100 * turn + receive.peer));
      }
      EXPECT_EQ(comm.traffic().at("ring"), (comm::Traffic{.messages = 10, .bytes = 40}));
    });
  }
}

TEST(ThreadComm, EqualTagsMatchInOrder) {
  run_threads(2, [](Comm& comm) {
    std::array<int, 3> items{1, 2, 3};
    std::vector<Message> messages;
    for (int& item : items) messages.push_back(message(1 - comm.rank(), std::span(&item, 1), 9));
    if (comm.rank() == 0) {
      const auto transfer = comm.bind(messages, {}, "order");
      transfer->start();
      transfer->wait();
    } else {
      items = {};
      const auto transfer = comm.bind({}, messages, "order");
      transfer->start();
      transfer->wait();
      EXPECT_EQ(items, (std::array<int, 3>{1, 2, 3}));
    }
  });
}

TEST(ThreadComm, Collectives) {
  run_threads(4, [](Comm& comm) {
    std::vector<int> items(5, comm.rank() == 2 ? 7 : 0);
    comm::broadcast(comm, std::span(items), 2);
    EXPECT_EQ(items, std::vector<int>(5, 7));

    const std::vector<int> mine(static_cast<std::size_t>(comm.rank()), comm.rank());
    const auto gathered = comm::gather(comm, std::span<const int>(mine), 1);
    const std::vector<std::vector<int>> all{{}, {1}, {2, 2}, {3, 3, 3}};
    EXPECT_EQ(gathered, comm.rank() == 1 ? all : std::vector<std::vector<int>>());

    EXPECT_EQ(comm::sum(comm, comm.rank()), 6);
    EXPECT_EQ(comm::max(comm, 0.5 * comm.rank()), 1.5);
    EXPECT_EQ(comm::min(comm, std::int64_t{comm.rank()} - 9), -9);
    EXPECT_EQ(comm::sum(comm, 0.5 * comm.rank()), 3);
    comm.barrier();
  });
}

TEST(ThreadComm, OneVoiceDecidesAVote) {
  run_threads(4, [](Comm& comm) {
    const auto vote = comm.make_vote();
    for (int speaker = -1; speaker < comm.size(); ++speaker) {
      vote->start(comm.rank() == speaker ? 1U << speaker : 0);
      EXPECT_EQ(comm::sum(comm, 1), 4);
      EXPECT_EQ(vote->result(), speaker >= 0 ? 1U << speaker : 0U);
    }
  });
}

TEST(ThreadComm, AVoteThatARankDoesNotStartIsADeadlock) {
  const std::string text = error_of(3, [](Comm& comm) {
    const auto vote = comm.make_vote();
    if (comm.rank() == 2) return;
    vote->start(1);
    vote->result();
  });

  EXPECT_CONTAINS(text, "in a vote");
}

TEST(ThreadComm, BlockingMessagesDoNotMatchBoundOnes) {
  run_threads(2, [](Comm& comm) {
    int bound = 1;
    int blocking = 2;
    if (comm.rank() == 0) {
      const Message send = message(1, std::span(&bound, 1), 0);
      const auto transfer = comm.bind({&send, 1}, {}, "bound");
      transfer->start();
      comm::send(comm, std::span<const int>(&blocking, 1), 1);
      transfer->wait();
    } else {
      bound = blocking = 0;
      comm::receive(comm, std::span(&blocking, 1), 0);
      const Message receive = message(0, std::span(&bound, 1), 0);
      const auto transfer = comm.bind({}, {&receive, 1}, "bound");
      transfer->start();
      transfer->wait();
      EXPECT_EQ(bound, 1);
      EXPECT_EQ(blocking, 2);
    }
  });
}

TEST(ThreadComm, DeadlockIsAnErrorThatNamesTheMissing) {
  const std::string text = error_of(3, [](Comm& comm) {
    if (comm.rank() == 2) return;
    int item = 0;
    const Message receive = message(1 - comm.rank(), std::span(&item, 1), 5);
    const auto transfer = comm.bind({}, {&receive, 1}, "halo");
    transfer->start();
    transfer->wait();
  });

  EXPECT_CONTAINS(text, "rank 0 waits: no message from rank 1 (halo, tag 5, 4 bytes)");
  EXPECT_CONTAINS(text, "rank 1 waits: no message from rank 0 (halo, tag 5, 4 bytes)");
}

TEST(ThreadComm, TestingInVainIsAnErrorAfterTheTimeout) {
  const auto body = [](Comm& comm) {
    int item = 0;
    const Message receive = message(1 - comm.rank(), std::span(&item, 1), 5);
    const auto transfer = comm.bind({}, {&receive, 1}, "halo");
    transfer->start();
    while (!transfer->test()) comm.progress();
  };

  EXPECT_CONTAINS(error_of(2, body, {.timeout = std::chrono::milliseconds(50)}), "tests in vain: no message from rank");
}

TEST(ThreadComm, SendWithoutReceiveDoesNotEnd) {
  const std::string text = error_of(2, [](Comm& comm) {
    int item = 0;
    const Message send = message(1 - comm.rank(), std::span(&item, 1), 0);
    const auto transfer = comm.bind({&send, 1}, {}, "halo");
    transfer->start();
    transfer->wait();
  });

  EXPECT_CONTAINS(text, "no receive by rank 1");
}

TEST(ThreadComm, FirstExceptionEndsAll) {
  const auto body = [](Comm& comm) {
    if (comm.rank() == 1) base::fail(base::Exit::io, "the disk is full");
    comm.barrier();
  };

  EXPECT_EQ(error_of(8, body), "the disk is full");
}

TEST(ThreadComm, CollectivesThatDifferAreAnError) {
  const auto body = [](Comm& comm) { comm.rank() == 0 ? comm.barrier() : void(comm::sum(comm, 1)); };

  EXPECT_CONTAINS(error_of(2, body), "but another rank calls");
}

/// Rank 0 sends an item of `item_bytes` to rank 1; `meddle` runs between start and wait.
void exchange(Comm& comm, std::size_t item_bytes, const std::function<void(Comm&, std::vector<char>&)>& meddle) {
  std::vector<char> item(comm.rank() == 0 ? item_bytes : 4, 'x');
  const Message one = message(1 - comm.rank(), std::span(item), 0);
  const std::span<const Message> messages(&one, 1);
  const std::span<const Message> none;
  const auto transfer = comm.bind(comm.rank() == 0 ? messages : none, comm.rank() == 0 ? none : messages, "halo");
  transfer->start();
  meddle(comm, item);
  transfer->wait();
}

TEST(ThreadComm, MisuseOfMemoryInFlightIsAnError) {
  const auto write_on = [](int rank) {
    return [rank](Comm& comm) {
      exchange(comm, 4, [&](Comm& c, std::vector<char>& item) {
        if (c.rank() == rank) item[3] = 'y';
      });
    };
  };

  EXPECT_CONTAINS(error_of(2, write_on(0)), "rank 0 wrote to memory that it was sending to rank 1");
  EXPECT_CONTAINS(error_of(2, write_on(1)), "rank 1 wrote to memory that rank 0 was sending to");
}

TEST(ThreadComm, SizesThatDifferAreAnError) {
  const auto body = [](Comm& comm) { exchange(comm, 5, [](Comm&, std::vector<char>&) {}); };

  EXPECT_CONTAINS(error_of(2, body), "rank 0 sends 5 bytes to rank 1, which expects 4 (tag 0)");
}

TEST(ThreadComm, TagsThatDoNotExistAreRefused) {
  const auto bind_with = [](int tag) {
    return [tag](Comm& comm) {
      int item = 0;
      const Message one = message(1 - comm.rank(), std::span(&item, 1), tag);
      comm.bind({&one, 1}, {}, "halo");
      comm.bind({}, {&one, 1}, "halo");
    };
  };

  run_threads(2, bind_with(32767), {.largest_tag = 32767});
  EXPECT_CONTAINS(error_of(2, bind_with(32768), {.largest_tag = 32767}),
                  "halo: a message needs tag 32768, but this MPI has tags up to 32767; use fewer micro-batches");
}

TEST(ThreadComm, TransferDestroyedInFlightIsAnError) {
  const std::string text = error_of(2, [](Comm& comm) {
    int item = 0;
    const Message one = message(1 - comm.rank(), std::span(&item, 1), 0);
    comm.bind({&one, 1}, {&one, 1}, "halo")->start();
    comm.barrier();
  });

  EXPECT_CONTAINS(text, "destroys a transfer (halo) that is in flight");
}

TEST(ThreadComm, ThousandsOfRunsAreQuick) {
  int done = 0;
  for (int run = 0; run < 1000; ++run) {
    run_threads(8, [&](Comm& comm) {
      const int total = comm::sum(comm, 1);
      if (comm.rank() == 0) done += total;
    });
  }
  EXPECT_EQ(done, 8000);
}

}  // namespace
}  // namespace orthant::test
