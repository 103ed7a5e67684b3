#include "orthant/comm/agree.hpp"

#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>

#include <new>

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;
using test::run_threads;

/// What every rank catches as a CollectiveError; the same on all.
Failure caught(int ranks, const std::function<void(Comm&)>& body) {
  std::vector<Failure> failures(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](Comm& comm) {
    try {
      body(comm);
    } catch (const CollectiveError& error) {
      failures[static_cast<std::size_t>(comm.rank())] = {error.code(), error.what()};
    }
  });
  for (const Failure& failure : failures) EXPECT_EQ(failure, failures.front());
  return failures.front();
}

TEST(Agree, ReturnsWhatWorkReturns) {
  run_threads(3, [](Comm& comm) {
    EXPECT_EQ(agree(comm, [&] { return std::string(3, static_cast<char>('a' + comm.rank())); }).front(),
              'a' + comm.rank());
    agree(comm, [] {});
  });
}

TEST(Agree, OneRanksErrorIsThrownByAll) {
  const auto open_on = [](std::vector<int> failing) {
    return [failing](Comm& comm) {
      agree(comm, [&] {
        for (const int rank : failing)
          if (rank == comm.rank()) fail(Exit::missing_input, "cannot open 'x.npy'");
        return 1;
      });
    };
  };

  EXPECT_EQ(caught(4, open_on({2})), (Failure{Exit::missing_input, "rank 2: cannot open 'x.npy'"}));
  EXPECT_EQ(caught(4, open_on({0, 3})), (Failure{Exit::missing_input, "ranks 0, 3: cannot open 'x.npy'"}));
  EXPECT_EQ(caught(4, open_on({0, 1, 2, 3})), (Failure{Exit::missing_input, "cannot open 'x.npy'"}));
  EXPECT_EQ(caught(1, open_on({0})), (Failure{Exit::missing_input, "cannot open 'x.npy'"}));
}

TEST(Agree, DifferentErrorsAreTheFirstRanksAndAHint) {
  const Failure failure = caught(4, [](Comm& comm) {
    agree(comm, [&] {
      if (comm.rank() == 1) throw std::bad_alloc();
      if (comm.rank() > 1) throw std::runtime_error("line 1\nline 2");
    });
  });

  EXPECT_EQ(
      failure,
      (Failure{Exit::does_not_fit,
               "rank 1: out of memory; use a smaller mini-batch or a smaller input (another error on ranks 2, 3)"}));
}

TEST(Agree, ExceptionsThatAreNoErrorsAreOurs) {
  const auto throw_of = [](auto thrown) { return [thrown](Comm& comm) { agree(comm, [&] { throw thrown; }); }; };

  EXPECT_EQ(caught(2, throw_of(std::runtime_error("line 1\nline 2"))),
            (Failure{Exit::internal, "unexpected: line 1 line 2; please report this"}));
  EXPECT_EQ(caught(2, throw_of(5)).code, Exit::internal);
}

TEST(OnRoot, RunsOnRankZeroOnly) {
  run_threads(3, [](Comm& comm) {
    const auto only_root = [&](auto value) {
      if (comm.rank() != 0) fail(Exit::internal, "not the root");
      return value;
    };
    EXPECT_EQ(on_root(comm, [&] { return only_root(std::string("a text")); }), "a text");
    EXPECT_EQ(on_root(comm, [&] { return only_root(std::string()); }), "");
    EXPECT_EQ(on_root(comm, [&] { return only_root(2.5); }), 2.5);
    on_root(comm, [&] { only_root(0); });
  });
}

TEST(OnRoot, ItsErrorIsThrownByAll) {
  const Failure failure =
      caught(3, [](Comm& comm) { on_root(comm, []() -> std::string { fail(Exit::io, "the disk is full"); }); });

  EXPECT_EQ(failure, (Failure{Exit::io, "the disk is full"}));
}

TEST(Merged, NamesAtMostEightRanks) {
  std::vector<Failure> failures(20, {Exit::io, "x"});
  failures.emplace_back();

  EXPECT_EQ(merged(failures).message, "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more: x");
}

}  // namespace
}  // namespace orthant::comm
