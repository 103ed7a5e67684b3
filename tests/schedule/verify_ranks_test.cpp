#include "orthant/schedule/verify.hpp"

#include "tests/schedule/small_schedules.hpp"

namespace orthant::schedule {
namespace {

Message& first_send(Schedule& schedule, const std::string& exchange) {
  return named(schedule.exchanges, exchange).rounds.front().sends.front();
}

TEST(VerifyRanks, NamesTheRankOfAMistake) {
  std::vector<Schedule> ranks = lowered("d2");
  --named(ranks[1].buffers, "relu.halo.packed").last_step;
  EXPECT_TRUE(finds(verify(ranks), "rank 1: step"));
}

TEST(VerifyRanks, FindsAMessageThatNobodyReceives) {
  std::vector<Schedule> ranks = lowered("d3");
  named(ranks[1].exchanges, "norm.statistics").rounds.front().receives.pop_back();
  // Rank 1 adds up what is there from before.
  EXPECT_TRUE(finds(verify(ranks), "norm.statistics.start: what is combined reads"));
  std::vector<Schedule> senders = lowered("d3");
  named(senders[1].exchanges, "norm.statistics").rounds.front().sends.pop_back();
  EXPECT_TRUE(finds(verify(senders), "norm.statistics: rank 2 has a message of 64 bytes that rank 1 never sends (tag"));
}

TEST(VerifyRanks, FindsAMessageWithoutAPartner) {
  std::vector<Schedule> ranks = lowered("d3");
  Exchange& exchange = named(ranks[1].exchanges, "norm.statistics");
  auto& sends = exchange.rounds.front().sends;
  sends.push_back(sends.front());
  EXPECT_TRUE(
      finds(verify(ranks), "norm.statistics: rank 1 has a message of 64 bytes that rank 0 never receives (tag"));
}

TEST(VerifyRanks, FindsAPartnerThatExpectsAnotherSize) {
  std::vector<Schedule> ranks = lowered("d2");
  first_send(ranks[1], "norm.statistics").bytes -= 8;
  EXPECT_TRUE(finds(verify(ranks), "norm.statistics: rank 1 sends 56 bytes to rank 0, which expects 64 for"));
}

TEST(VerifyRanks, FindsATagThatDiffers) {
  std::vector<Schedule> ranks = lowered("d2");
  named(ranks[0].exchanges, "relu.halo").tag += 1000;
  EXPECT_TRUE(finds(verify(ranks), "relu.halo: rank 1 has a message of 4096 bytes that rank 0 never sends (tag"));
}

TEST(VerifyRanks, FindsAMessageToTheRankItself) {
  std::vector<Schedule> ranks = lowered("d2");
  first_send(ranks[1], "relu.halo").peer = 1;
  EXPECT_TRUE(finds(verify(ranks), "rank 1: relu.halo has a message for rank 1"));
}

TEST(VerifyRanks, FindsAPeerThatDoesNotExist) {
  std::vector<Schedule> ranks = lowered("d2");
  first_send(ranks[0], "relu.halo").peer = 2;
  EXPECT_TRUE(finds(verify(ranks), "rank 0: relu.halo has a message for rank 2"));
}

TEST(VerifyRanks, FindsThatTwoRanksWaitForEachOther) {
  std::vector<Schedule> ranks = lowered("d2");
  // The statistics of rank 1 start behind the halo, which rank 0 starts behind the statistics.
  move_behind(ranks[1], "norm.statistics.start", "relu.halo.finish");
  move_behind(ranks[1], "norm.statistics.finish", "norm.statistics.start");
  named(ranks[1].steps, "norm.forward").arguments[model::at::norm_forward::sums] =
      named(ranks[1].steps, "norm.forward_sums").arguments.back();
  const std::vector<std::string> mistakes = verify(ranks);
  ASSERT_EQ(mistakes.size(), 1U) << testing::PrintToString(mistakes);
  EXPECT_EQ(mistakes.front(),
            "no rank of these can go on: rank 0 waits in step 3, norm.statistics.finish, for rank 1 to reach step 6, "
            "norm.statistics.start; rank 1 waits in step 5, relu.halo.finish, for rank 0 to reach step 6, "
            "relu.halo.start");
}

TEST(VerifyRanks, FindsACycleOfThree) {
  // Each rank sends to the next one, and first waits until it has from the one before.
  std::vector<Schedule> ranks(3);
  for (int rank = 0; rank < 3; ++rank) {
    Schedule& schedule = ranks[static_cast<std::size_t>(rank)];
    schedule.buffers = {
        {.name = "x", .bytes = 8, .persistent = true, .first_step = 0, .last_step = 3},
    };
    schedule.exchanges = {{.name = "get", .rounds = {{.receives = {{(rank + 2) % 3, 0, 0, 4}}}}},
                          {.name = "give", .rounds = {{.sends = {{(rank + 1) % 3, 0, 4, 4}}}}}};
    schedule.steps = {{.name = "get.start", .work = Start{0}, .arguments = {0}},
                      {.name = "get.finish", .work = Finish{0}, .arguments = {0}},
                      {.name = "give.start", .work = Start{1}, .arguments = {0}},
                      {.name = "give.finish", .work = Finish{1}, .arguments = {0}}};
  }
  EXPECT_TRUE(finds(verify(ranks),
                    "no rank of these can go on: rank 0 waits in step 1, get.finish, for rank 2 to reach step 2, "
                    "give.start; rank 2 waits in step 1, get.finish, for rank 1 to reach step 2, give.start; rank 1 "
                    "waits in step 1, get.finish, for rank 0 to reach step 2, give.start"));
  std::swap(ranks[1].steps[1], ranks[1].steps[2]);
  EXPECT_EQ(verify(ranks), std::vector<std::string>{});
}

TEST(VerifyRanks, FindsThatOnlyOneSideReadsInPlace) {
  std::vector<Schedule> ranks = lowered("n2");
  named(ranks[0].exchanges, "dense.weight.reduce").rounds.front().sends.front().transport = Transport::moved;
  EXPECT_TRUE(finds(verify(ranks), "dense.weight.reduce: rank 0 and rank 1 do not agree whether it moves"));
}

TEST(VerifyRanks, FindsGradientsThatGoBeforeTheyAreRead) {
  std::vector<Schedule> ranks = lowered("n2");
  // Rank 0 takes the weights of rank 1 as the sign that it has read, but that one reads once more.
  const tensor::Layout one = tensor::channels_last({.n = 1, .c = 1});
  insert_behind(ranks[1],
                {.name = "extra",
                 .work = model::CopyTask{.src = one, .dst = one},
                 .arguments = {buffer_index(ranks[1], "dense.weight.reduce.kept0"), buffer_index(ranks[1], "a")}},
                "dense.weight.spread.start");
  EXPECT_TRUE(finds(verify(ranks), "rank 0 may write over dense.weight.bucket.gradient after step"));
}

}  // namespace
}  // namespace orthant::schedule
