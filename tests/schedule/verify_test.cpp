#include "orthant/schedule/verify.hpp"

#include "orthant/base/error.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace orthant::schedule {
namespace {

const std::vector<std::string> nothing{};

Schedule serial() { return lowered("n1").front(); }
Schedule first_of(const std::string& grid) { return lowered(grid).front(); }

Step fill(const Schedule& schedule, const std::string& buffer, std::int64_t offset, std::int64_t items) {
  tensor::Layout layout = tensor::channels_last({.n = 1, .c = items});
  layout.offset = offset;
  return {.name = "extra", .work = model::FillTask{.dst = layout}, .arguments = {buffer_index(schedule, buffer)}};
}

TEST(Verify, FindsNothingInWhatIsRight) {
  for (const char* grid : {"n1", "n2", "d2", "f2", "c2", "p2", "n2d2", "d2h2w2", "n2p2"}) {
    EXPECT_EQ(verify(lowered(grid)), nothing) << grid;
    EXPECT_EQ(verify(lowered(grid, {.mode = Mode::evaluate, .keep_output = true})), nothing) << grid;
    EXPECT_EQ(verify(lowered(grid, {.update = false, .input_gradient = true})), nothing) << grid;
    EXPECT_EQ(verify(lowered(grid, {.optimizer = {.kind = model::OptimizerKind::adam}})), nothing) << grid;
  }
}

// Arguments and bounds.

TEST(Verify, FindsAnOffsetThatIsWrong) {
  Schedule schedule = serial();
  task_of<model::ConvTask>(schedule, "a.forward").dst.offset = 4;
  EXPECT_TRUE(finds(verify(schedule), "a.forward: argument dst is bytes 16 to 32784 of a, which has 32768"));
}

TEST(Verify, FindsAStrideThatIsWrong) {
  Schedule schedule = serial();
  task_of<model::PoolTask>(schedule, "pool.forward").dst.strides.n *= 2;
  EXPECT_TRUE(finds(verify(schedule), "pool.forward: argument dst is bytes"));
}

TEST(Verify, FindsAnArgumentThatIsMissing) {
  Schedule schedule = serial();
  named(schedule.steps, "a.forward").arguments[model::at::conv_forward::bias] = -1;
  EXPECT_TRUE(finds(verify(schedule), "a.forward: argument bias is missing"));
}

TEST(Verify, FindsAnArgumentThatTheTaskHasNot) {
  Schedule schedule = serial();
  named(schedule.steps, "b.forward").arguments[model::at::conv_forward::bias] = buffer_index(schedule, "a.bias");
  EXPECT_TRUE(finds(verify(schedule), "b.forward: argument bias is a.bias, but the task has none"));
}

TEST(Verify, FindsAListOfArgumentsThatIsTooShort) {
  Schedule schedule = serial();
  named(schedule.steps, "norm.forward").arguments.pop_back();
  EXPECT_TRUE(finds(verify(schedule), "norm.forward has 8 arguments, but a norm takes 9"));
}

TEST(Verify, FindsABufferThatDoesNotExist) {
  Schedule schedule = serial();
  named(schedule.steps, "b.forward").arguments.front() = 1000;
  EXPECT_TRUE(finds(verify(schedule), "b.forward has buffer 1000, which does not exist"));
}

TEST(Verify, FindsAPieceBeyondItsBuffer) {
  Schedule schedule = serial();
  named(schedule.buffers, "a.weight").offset_bytes = 1 << 20;
  EXPECT_TRUE(finds(verify(schedule), "a.weight is bytes 1048576 to"));
}

TEST(Verify, FindsAMessageBeyondItsBuffer) {
  Schedule schedule = first_of("d2");
  named(schedule.exchanges, "relu.halo").rounds.front().receives.front().offset_bytes += 4;
  EXPECT_TRUE(finds(verify(schedule), "relu.halo: the message from rank 1 is bytes"));
}

TEST(Verify, FindsAMessageWithoutBytes) {
  Schedule schedule = first_of("d2");
  named(schedule.exchanges, "relu.halo").rounds.front().sends.front().bytes = 0;
  EXPECT_TRUE(finds(verify(schedule), "relu.halo: the message to rank 1 has 0 bytes"));
}

// What is read.

TEST(Verify, FindsAReadBeforeItsWrite) {
  Schedule schedule = serial();
  swap_steps(schedule, "a.forward", "norm.forward_sums");
  EXPECT_TRUE(finds(verify(schedule), "norm.forward_sums: x reads bytes 0 to 32768 of a before they are written"));
}

TEST(Verify, FindsAHaloThatDoesNotArrive) {
  Schedule schedule = first_of("d2");
  auto& pieces = task_of<model::CopyPiecesTask>(schedule, "b.unpack").pieces;
  pieces.front().dst.extents.w -= 1;
  pieces.front().src.extents.w -= 1;
  EXPECT_TRUE(finds(verify(schedule), "b.forward: src reads bytes"));
}

TEST(Verify, FindsAMessageThatIsSentBeforeItIsPacked) {
  Schedule schedule = first_of("d2");
  swap_steps(schedule, "b.pack", "relu.halo.start");
  EXPECT_TRUE(finds(verify(schedule), "relu.halo.start: the message to rank 1 reads bytes"));
}

TEST(Verify, FindsAGradientThatIsAddedToNothing) {
  Schedule schedule = serial();
  task_of<model::ConvTask>(schedule, "b.backward_weights").accumulate = true;
  EXPECT_TRUE(finds(verify(schedule), "b.backward_weights: diff_weights reads bytes"));
}

TEST(Verify, FindsALossThatNobodyWrites) {
  Schedule schedule = serial();
  const int other = static_cast<int>(schedule.buffers.size());
  schedule.buffers.push_back(named(schedule.buffers, "loss"));
  schedule.losses.front() = other;
  EXPECT_TRUE(finds(verify(schedule), "bytes 0 to 16 of loss are never written"));
}

TEST(Verify, FindsADstThatLiesOverItsSrc) {
  Schedule schedule = serial();
  keep_all(schedule);
  named(schedule.steps, "b.forward").arguments[model::at::conv_forward::dst] = buffer_index(schedule, "relu");
  EXPECT_TRUE(finds(verify(schedule), "b.forward: dst writes over src in relu"));
}

// Lifetimes.

TEST(Verify, FindsALifetimeThatEndsOneStepShort) {
  Schedule schedule = serial();
  --named(schedule.buffers, "relu").last_step;
  EXPECT_TRUE(finds(verify(schedule), "b.backward_weights, uses relu, which lives from step 2 to 12"));
}

TEST(Verify, FindsALifetimeThatBeginsOneStepLate) {
  Schedule schedule = serial();
  ++named(schedule.buffers, "pool").first_step;
  EXPECT_TRUE(finds(verify(schedule), "pool.forward, uses pool, which lives from step 5 to 5"));
}

TEST(Verify, FindsALifetimeThatEndsInFlight) {
  Schedule schedule = first_of("d2");
  named(schedule.steps, "relu.halo.finish").arguments.clear();
  named(schedule.buffers, "relu.halo.packed").last_step = step_index(schedule, "relu.halo.start");
  EXPECT_TRUE(finds(verify(schedule), "relu.halo.finish, uses relu.halo.packed, which lives from"));
}

TEST(Verify, FindsWeightsThatDoNotLast) {
  Schedule schedule = serial();
  --named(schedule.buffers, "dense.weight.bucket").last_step;
  EXPECT_TRUE(finds(verify(schedule), "dense.weight.bucket is persistent, but lives from step 0 to"));
}

TEST(Verify, FindsAnInputThatIsNotPersistent) {
  Schedule schedule = serial();
  named(schedule.buffers, "input").persistent = false;
  EXPECT_TRUE(finds(verify(schedule), "an input lies in input, which is not persistent"));
}

// Messages in flight.

TEST(Verify, FindsAWriteToWhatIsBeingSent) {
  Schedule schedule = first_of("d2");
  insert_behind(schedule, fill(schedule, "relu.halo.packed", 0, 1), "relu.halo.start");
  EXPECT_TRUE(finds(verify(schedule), "extra: dst writes bytes 0 to 4 of relu.halo.packed while relu.halo sends them"));
}

TEST(Verify, FindsAReadOfWhatIsBeingReceived) {
  Schedule schedule = first_of("n2");
  move_behind(schedule, "norm.statistics.finish", "norm.forward");
  const std::vector<std::string> mistakes = verify(schedule);
  EXPECT_TRUE(std::any_of(mistakes.begin(), mistakes.end(), [](const std::string& mistake) {
    return mistake.find(
               "norm.forward: sums reads bytes 0 to 64 of norm.sums.result while norm.statistics receives "
               "them") != std::string::npos;
  })) << testing::PrintToString(mistakes);
}

TEST(Verify, FindsAWriteToWhatIsBeingReceived) {
  Schedule schedule = first_of("n2");
  insert_behind(schedule, fill(schedule, "norm.sums", 16, 1), "norm.statistics.start");
  EXPECT_TRUE(finds(verify(schedule), "extra: dst writes bytes 64 to 68 of norm.sums while norm.statistics receives"));
}

TEST(Verify, FindsTwoMessagesIntoOnePlace) {
  Schedule schedule = first_of("d3");
  Exchange& exchange = named(schedule.exchanges, "norm.statistics");
  auto& receives = exchange.rounds.front().receives;
  receives[1].offset_bytes = receives[0].offset_bytes;
  EXPECT_TRUE(finds(verify(schedule), "the message from rank 1 writes bytes 64 to 128 of norm.sums while"));
}

TEST(Verify, FindsAReadOfCommonWeightsThatAnotherRankUpdates) {
  Schedule schedule = first_of("n2");
  move_behind(schedule, "dense.weight.reduce.start", "dense.forward");
  keep_all(schedule);
  const std::vector<std::string> mistakes = verify(schedule);
  EXPECT_TRUE(std::any_of(mistakes.begin(), mistakes.end(), [](const std::string& mistake) {
    return mistake == "dense.backward_data: weights touches dense.weight.bucket, which rank 1 may be updating";
  })) << testing::PrintToString(mistakes);
}

TEST(Verify, FindsGradientsThatAreReadInPlaceWithoutAnEnd) {
  Schedule schedule = first_of("n2");
  named(schedule.steps, "dense.weight.spread.finish").arguments.pop_back();
  EXPECT_TRUE(finds(verify(schedule), "dense.weight.bucket.gradient is read in place by rank 1, and nothing says"));
}

TEST(Verify, FindsAWriteToGradientsThatAreReadInPlace) {
  Schedule schedule = first_of("n2");
  const std::int64_t first =
      named(schedule.exchanges, "dense.weight.reduce").rounds.front().sends.front().offset_bytes / 4;
  insert_behind(schedule, fill(schedule, "dense.weight.bucket.gradient", first, 1), "dense.weight.update");
  EXPECT_TRUE(finds(verify(schedule), "of dense.weight.bucket.gradient while dense.weight.reduce sends them"));
}

TEST(Verify, FindsGradientsToBeReadInPlaceThatAreNotShared) {
  Schedule schedule = first_of("n2");
  named(schedule.buffers, "dense.weight.bucket.gradient").shared = false;
  EXPECT_TRUE(finds(verify(schedule), "dense.weight.reduce is to be read in place in dense.weight.bucket.gradient"));
}

TEST(Verify, FindsGradientsThatAreReceivedInPlaceWhereNobodyKeepsThem) {
  Schedule schedule = first_of("n2");
  named(schedule.buffers, "dense.weight.reduce.kept1").keeper = -1;
  EXPECT_TRUE(finds(verify(schedule), "dense.weight.reduce receives dense.weight.reduce.kept1 from rank 1, and"));
}

TEST(Verify, FindsAWriteToMemoryOfAnotherRank) {
  Schedule schedule = first_of("n2");
  insert_behind(schedule, fill(schedule, "dense.weight.reduce.kept1", 0, 1), "dense.weight.reduce.finish");
  EXPECT_TRUE(finds(verify(schedule), "writes dense.weight.reduce.kept1, which rank 1 keeps"));
}

TEST(Verify, FindsCommonWeightsThatAreNotShared) {
  Schedule schedule = first_of("n2");
  named(schedule.buffers, "dense.weight.bucket").shared = false;
  EXPECT_TRUE(finds(verify(schedule), "dense.weight.spread is to be read in place in dense.weight.bucket"));
}

// Exchanges.

TEST(Verify, FindsAnExchangeThatIsNeverFinished) {
  Schedule schedule = first_of("d2");
  schedule.steps.erase(schedule.steps.begin() + step_index(schedule, "relu.halo.finish"));
  EXPECT_TRUE(finds(verify(schedule), "relu.halo is finished 0 times"));
}

TEST(Verify, FindsAnExchangeThatIsStartedTwice) {
  Schedule schedule = first_of("d2");
  const Step again = named(schedule.steps, "relu.halo.start");
  insert_behind(schedule, again, "relu.halo.start");
  EXPECT_TRUE(finds(verify(schedule), "relu.halo is started 2 times"));
}

TEST(Verify, FindsAFinishBeforeItsStart) {
  Schedule schedule = first_of("d2");
  swap_steps(schedule, "relu.halo.start", "relu.halo.finish");
  EXPECT_TRUE(finds(verify(schedule), "relu.halo.finish comes before its start"));
}

TEST(Verify, FindsAnExchangeThatDoesNotExist) {
  Schedule schedule = first_of("d2");
  named(schedule.steps, "relu.halo.start").work = Start{1000};
  EXPECT_TRUE(finds(verify(schedule), "relu.halo.start has exchange 1000, which does not exist"));
}

TEST(Verify, FindsAnExchangeWithoutMessages) {
  Schedule schedule = first_of("d2");
  named(schedule.exchanges, "relu.halo").rounds.clear();
  EXPECT_TRUE(finds(verify(schedule), "relu.halo has no messages"));
}

TEST(Verify, FindsTwoExchangesInFlightWithOneTag) {
  Schedule schedule = first_of("d2");
  move_behind(schedule, "norm.statistics.finish", "relu.halo.start");
  named(schedule.exchanges, "norm.statistics").tag = named(schedule.exchanges, "relu.halo").tag;
  EXPECT_TRUE(finds(verify(schedule), "norm.statistics and relu.halo are in flight together with tag"));
}

TEST(Verify, CheckThrowsWithTheFirstMistakes) {
  Schedule schedule = serial();
  EXPECT_NO_THROW(check(schedule));
  --named(schedule.buffers, "relu").last_step;
  try {
    check(schedule);
    ADD_FAILURE() << "nothing is thrown";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.code(), base::Exit::internal);
    EXPECT_EQ(
        std::string(error.what()),
        "a schedule has 1 mistakes: step 13, b.backward_weights, uses relu, which lives from step 2 to 12; please "
        "report this");
  }
}

TEST(BytesMoved, OfAStepAreThoseOfTheArgumentsItHas) {
  const Schedule schedule = serial();
  const std::int64_t relu = 4 * 4 * 512 * 4, weights = 27 * 4 * 4 * 4;
  EXPECT_EQ(bytes_moved(named(schedule.steps, "b.forward")), 2 * relu + weights);
  // Neither a second gradient nor y.
  EXPECT_EQ(bytes_moved(named(schedule.steps, "norm.backward")), 3 * relu + 4 * 4 * (1 + 1 + 2) + 8 * 2 * 4);
  const Schedule cut = first_of("d2");
  EXPECT_EQ(bytes_moved(named(cut.steps, "relu.halo.start")), 0);
}

}  // namespace
}  // namespace orthant::schedule
