#include "orthant/comm/board.hpp"

#include "orthant/comm/typed.hpp"
#include "tests/support/mpi_main.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace orthant::comm {
namespace {

using test::ranks;

TEST(Board, KnowsTheRanksOfTheMachine) {
  const Board board(ranks());

  EXPECT_EQ(static_cast<int>(board.members().size()), ranks().size());
  EXPECT_EQ(board.members()[board.me()].rank, ranks().rank());
  EXPECT_EQ(board.members()[board.me()].pid, getpid());
}

TEST(Board, OneRankSpeaks) {
  Board board(ranks());

  const int speakers = sum(ranks(), board.claim() ? 1 : 0);

  EXPECT_EQ(speakers, 1);
  EXPECT_FALSE(board.claim());
}

TEST(Board, ShowsWhatEachRankWaitsIn) {
  Board board(ranks());
  const std::string mine = "layer " + std::to_string(ranks().rank()) + std::string(80, 'x');

  board.show(mine.c_str());
  ranks().barrier();
  for (std::size_t i = 0; i < board.members().size(); ++i)
    EXPECT_EQ(board.shown(i), ("layer " + std::to_string(i) + std::string(80, 'x')).substr(0, 59));
  ranks().barrier();
  board.show(nullptr);
  ranks().barrier();

  for (std::size_t i = 0; i < board.members().size(); ++i) EXPECT_EQ(board.shown(i), "");
  ranks().barrier();
}

TEST(Board, TellsWhoLeftBecauseItWasTold) {
  Board board(ranks());

  if (board.me() == 1) board.take_leave();
  ranks().barrier();

  for (std::size_t i = 0; i < board.members().size(); ++i) EXPECT_EQ(board.has_left(i), i == 1);
  ranks().barrier();
}

}  // namespace
}  // namespace orthant::comm
