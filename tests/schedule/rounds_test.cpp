// How many rounds, messages and bytes exchanges of large groups have.
#include "orthant/schedule/bucket_rounds.hpp"
#include "orthant/schedule/gather_rounds.hpp"
#include "orthant/schedule/sum_rounds.hpp"

#include <gtest/gtest.h>

namespace orthant::schedule {
namespace {

using plan::Form;
using plan::GroupForm;

tensor::RankGroup all_of(int ranks) { return {{.global = {ranks, 1, 1, 1, 1}, .grid = {.n = ranks}}, 0, {}}; }

Levels levels(int ranks, int rank, int per_machine = 1) {
  return levels_of(all_of(ranks), rank, plan::Machines::alike(ranks, per_machine), true);
}

Volume volume_of(std::vector<Round> rounds) { return sent(Exchange{.name = "", .rounds = std::move(rounds)}); }

/// Twos are joined to fours while messages are few.
TEST(SumRounds, GrowWithTheLogarithmOfTheGroup) {
  struct Group {
    int ranks, rounds, messages;
  };
  const GroupForm recursive{.form = Form::recursive, .direct_up_to = 0};
  for (const auto& [ranks, rounds, messages] : {Group{2, 1, 1}, {8, 2, 4}, {64, 3, 9}, {512, 5, 13}, {2048, 9, 13}}) {
    const SumRounds sum = sum_rounds(levels(ranks, ranks / 2), recursive, 16, 0, 1);
    EXPECT_EQ(sum.rounds.size(), static_cast<std::size_t>(rounds)) << ranks << " ranks";
    EXPECT_EQ(volume_of(sum.rounds), (Volume{messages, messages * 16 * 8})) << ranks << " ranks";
  }
}

/// All but one of sixteen hand over what they have: no form has fewer messages.
TEST(SumRounds, OfATreeHaveFewMessagesInAll) {
  struct Group {
    int ranks, messages;
  };
  const GroupForm tree{.form = Form::tree, .direct_up_to = 0};
  for (const auto& [ranks, messages] : {Group{2, 2}, {16, 30}, {17, 30 + 2}, {32, 60 + 2}, {256, 480 + 16 * 6}}) {
    for (const int per_machine : {1, ranks}) {
      std::int64_t sent_by_all = 0;
      for (int rank = 0; rank < ranks; ++rank)
        sent_by_all += volume_of(sum_rounds(levels(ranks, rank, per_machine), tree, 1, 0, 1).rounds).messages;
      EXPECT_EQ(sent_by_all, messages) << ranks << " ranks";
    }
  }
}

TEST(SumRounds, OfAnyGroupTakeFewMessages) {
  const GroupForm recursive{.form = Form::recursive, .direct_up_to = 0};
  for (const int ranks : {3, 5, 7, 11, 13, 97, 1009, 2047}) {
    for (const int rank : {0, 1, ranks / 2, ranks - 1}) {
      const SumRounds sum = sum_rounds(levels(ranks, rank), recursive, 1, 0, 1);
      EXPECT_LE(volume_of(sum.rounds).messages, 20) << ranks << " ranks, rank " << rank;
    }
  }
}

/// Halving and doubling move twice the bucket but for a share of one owner.
TEST(BucketRounds, MoveNoMoreThanTheyMust) {
  const GroupForm recursive{.form = Form::recursive, .direct_up_to = 0};
  for (const int ranks : {2, 6, 12, 64, 2048}) {
    const Levels own = levels(ranks, ranks - 1);
    const BucketParts parts = parts_of_bucket(own, recursive, 1 << 20, 16);
    const BucketExchange exchange{.levels = own, .form = recursive, .parts = parts, .buffer = 0, .staging = 1};
    const std::int64_t least = parts.items() / ranks * (ranks - 1) * 4;
    EXPECT_EQ(volume_of(reduce_rounds(exchange, true).rounds).bytes, least);
    EXPECT_EQ(volume_of(spread_rounds(exchange).rounds).bytes, least);
    EXPECT_LE(parts.items(), (1 << 20) + 16 * ranks);
  }
}

/// In two levels every rank sends to other machines what its region needs, 1/k of what it would send in one.
TEST(BucketRounds, OfTwoLevelsSendLessBetweenMachines) {
  const GroupForm recursive{.form = Form::recursive, .direct_up_to = 0};
  const int ranks = 16;
  const int together = 4;
  const Levels own = levels(ranks, 5, together);
  const BucketParts parts = parts_of_bucket(own, recursive, 1 << 20, 16);
  const BucketExchange exchange{.levels = own, .form = recursive, .parts = parts, .buffer = 0, .staging = 1};
  std::int64_t between = 0;
  for (const Round& round : reduce_rounds(exchange, true).rounds) {
    for (const Message& message : round.sends)
      if (message.peer / together != 5 / together) between += message.bytes;
  }
  EXPECT_EQ(between, (std::int64_t{1} << 20) * 4 / together * 3 / 4);
}

/// `parts` groups of ranks that have blocks of channels, all of which each of them wants.
tensor::Redistribution gathering(int samples, int channels, int parts) {
  const tensor::Distribution held{.global = {samples, channels, 2, 2, 2}, .grid = {.n = samples, .c = parts}};
  tensor::Demand wanted = tensor::demand_of(held);
  wanted.channels = [channels](int /*coordinate*/) { return std::vector<tensor::Range>{{0, channels}}; };
  return {.held = held, .wanted = wanted};
}

constexpr GroupForm gathers{.form = Form::recursive, .direct_up_to = 0};

/// Doubling receives all that others have, once, and halving the same the other way round; both take few messages.
TEST(GatherRounds, MoveNoMoreThanTheyMust) {
  for (const int parts : {2, 6, 9, 32, 50}) {
    const auto group = gather_group(gathering(3, 3 * parts + 1, parts), parts + 1, gathers);
    ASSERT_TRUE(group);
    EXPECT_EQ(group->members.front(), parts);
    const GatherOrder order(*group);
    const std::int64_t own = order.block(1).hi - order.block(1).lo;
    EXPECT_EQ(order.items(), (3 * parts + 1) * 8);
    std::int64_t received = 0;
    for (const Round& round : gather_rounds(*group, order, {0, 0})) {
      for (const Message& message : round.receives) received += message.bytes;
    }
    EXPECT_EQ(received, (order.items() - own) * 4) << parts << " parts";
    const Volume back = volume_of(scatter_rounds(*group, order, {0, 0}, 1).rounds);
    EXPECT_EQ(back.bytes, (order.items() - own) * 4) << parts << " parts";
    EXPECT_LE(back.messages, 9) << parts << " parts";
  }
}

TEST(GatherRounds, AreForGroupsThatWantEverything) {
  const tensor::Redistribution all = gathering(2, 64, 16);
  EXPECT_TRUE(gather_group(all, 20, gathers));
  EXPECT_FALSE(gather_group(all, 20, {.form = Form::recursive, .direct_up_to = 16}));
  EXPECT_FALSE(gather_group(all, 20, {.form = Form::direct}));
  EXPECT_FALSE(gather_group(all, 32, gathers)) << "no member";

  tensor::Redistribution own = all;
  own.wanted = tensor::demand_of(all.held);
  EXPECT_FALSE(gather_group(own, 20, gathers));
  tensor::Redistribution some = all;
  some.wanted.channels = [](int i) { return std::vector<tensor::Range>{{0, i == 15 ? 32 : 64}}; };
  EXPECT_FALSE(gather_group(some, 20, gathers));
  tensor::Redistribution halo = all;
  halo.held.grid = halo.wanted.grid = {.n = 2, .c = 8, .d = 2};
  halo.wanted.along = [](tensor::Dim dim, int i) {
    return dim == tensor::Dim::n ? tensor::Range{i, i + 1} : tensor::Range{0, dim == tensor::Dim::d && i == 0 ? 1 : 2};
  };
  EXPECT_FALSE(gather_group(halo, 20, gathers));
}

/// Ranks that have cells and want channels next, all of them.
TEST(GatherRounds, GatherAcrossGrids) {
  tensor::Redistribution boxes = gathering(2, 64, 8);
  boxes.held.grid = {.n = 2, .d = 2, .h = 2, .w = 2};
  const auto group = gather_group(boxes, 11, gathers);
  ASSERT_TRUE(group);
  EXPECT_EQ(group->members, (std::vector<int>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(group->place, 3);
}

}  // namespace
}  // namespace orthant::schedule
