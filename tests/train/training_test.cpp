#include "orthant/train/training.hpp"

#include "orthant/train/checkpoint/restore.hpp"
#include "orthant/train/weights.hpp"
#include "tests/train/resumed_runs.hpp"

#include <cmath>

namespace orthant::train {
namespace {

using base::Exit;
using checkpoint::Directory;
using test::expect_error;
using test::train_on;
using Kind = ResumeOptions::Kind;

/// Runs, goes on from the checkpoints of some steps, and expects the same bits.
void expect_exact(model::OptimizerKind kind, const std::string& grid, int ranks) {
  const test::TemporaryDirectory folder;
  RunFile run = test::resumable_run(folder, kind);
  std::vector<std::string> rows;
  const std::vector<std::int64_t> stops =
      ranks == 1 ? std::vector<std::int64_t>{1, 2, 3, 6, 11} : std::vector<std::int64_t>{2, 11};
  for (const std::int64_t step : stops) {
    run.checkpoint.every = step;
    run.overwrite = true;
    const Summary whole = train_on(run, grid, ranks);
    const auto expected = test::shards_of(run.output, run.steps);
    ASSERT_FALSE(expected.empty());
    // Checkpoints change nothing.
    if (rows.empty()) rows = test::rows_of(run.output);
    EXPECT_EQ(test::rows_of(run.output), rows);
    RunFile again = run;
    again.output = test::copy_up_to(folder, run.output, step, "again");
    const Summary rest = train_on(again, grid, ranks, {.kind = Kind::exact});
    EXPECT_EQ(rest.resumed_step, step);
    EXPECT_EQ(rest.first_loss, whole.first_loss) << grid << " from " << step;
    EXPECT_EQ(rest.last_loss, whole.last_loss);
    EXPECT_EQ(rest.best_step, whole.best_step);
    EXPECT_EQ(rest.best->loss, whole.best->loss);
    EXPECT_EQ(test::rows_of(again.output), test::rows_of(run.output)) << grid << " from " << step;
    EXPECT_EQ(data::io::read_text(rest.weights), data::io::read_text(whole.weights)) << grid << " from " << step;
    EXPECT_EQ(data::io::read_text(rest.best_weights), data::io::read_text(whole.best_weights));
    EXPECT_EQ(test::shards_of(again.output, run.steps), expected) << grid << " from " << step;
  }
}

TEST(Training, ResumesBitForBit) {
  expect_exact(model::OptimizerKind::sgd, "n1", 1);
  expect_exact(model::OptimizerKind::adam, "n1", 1);
  expect_exact(model::OptimizerKind::adamw, "n2", 2);
  expect_exact(model::OptimizerKind::sgd, "d2", 2);
  expect_exact(model::OptimizerKind::adam, "f2", 2);
  expect_exact(model::OptimizerKind::adam, "n2d2", 4);
}

TEST(Training, GoesOnWithAnyPlan) {
  const test::TemporaryDirectory folder;
  RunFile run = test::resumable_run(folder, model::OptimizerKind::adam);
  run.checkpoint.every = 6;
  const Summary whole = train_on(run, "n1", 1);
  for (const auto& [grid, ranks] : {std::pair("n2", 2), {"d2", 2}, {"f3", 3}, {"n2d2", 4}, {"n4", 4}, {"d2h2", 4}}) {
    RunFile again = run;
    again.output = test::copy_up_to(folder, run.output, 6, "again");
    const Summary rest = train_on(again, grid, ranks, {.kind = Kind::newest});
    EXPECT_EQ(rest.resumed_step, 6);
    EXPECT_NEAR(rest.last_loss, whole.last_loss, 1e-5 * std::abs(whole.last_loss)) << grid;
    expect_error(Exit::bad_data, "use --resume without exact", [&] {
      again.output = test::copy_up_to(folder, run.output, 6, "again");
      train_on(again, grid, ranks, {.kind = Kind::exact});
    });
  }
}

TEST(Training, SkipsDamagedCheckpointsAndSaysWhy) {
  const test::TemporaryDirectory folder;
  RunFile run = test::resumable_run(folder, model::OptimizerKind::adam);
  run.steps = 4;
  run.checkpoint.every = 3;
  const Summary whole = train_on(run, "n1", 1);
  const std::string file = Directory(run.output).of(4) + "/shard-00000.safetensors";
  std::string bytes = data::io::read_text(file);
  bytes[bytes.size() / 2] ^= 1;
  data::io::write_text(file, bytes);

  expect_error(Exit::bad_data, "is damaged: bytes 0 to", [&] { train_on(run, "n1", 1, {.kind = Kind::exact}); });
  std::vector<std::string> notes;
  TrainOptions options{.name = "x",
                       .started = [&](const RunDescription& begin) { notes = begin.notes; },
                       .resume = {.kind = Kind::newest}};
  const Summary rest = train(run, test::alone(), options);

  EXPECT_EQ(rest.resumed_step, 3);
  EXPECT_EQ(rest.last_loss, whole.last_loss);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_NE(notes[0].find("shard-00000.safetensors' is damaged: bytes 0 to"), std::string::npos) << notes[0];
  EXPECT_TRUE(std::filesystem::exists(Directory(run.output).of(4) + ".damaged"));
  EXPECT_EQ(Directory(run.output).steps().front(), 4);
}

TEST(Training, RefusesWhatCannotBeGoneOnWith) {
  const test::TemporaryDirectory folder;
  RunFile run = test::resumable_run(folder, model::OptimizerKind::adam);
  run.steps = 2;
  expect_error(Exit::missing_input, "is not a directory", [&] { train_on(run, "n1", 1, {.kind = Kind::newest}); });
  train_on(run, "n1", 1);
  const auto resume = [&](const RunFile& changed) { train_on(changed, "n1", 1, {.kind = Kind::newest}); };
  RunFile other = run;
  other.seed = 2;
  expect_error(Exit::bad_data, "the seed 1, but the run 2", [&] { resume(other); });
  other = run;
  other.network.mini_batch = 2;
  expect_error(Exit::bad_data, "a mini-batch of 4, but the run 2", [&] { resume(other); });
  other = run;
  other.optimizer = {};
  expect_error(Exit::bad_data, "the optimizer", [&] { resume(other); });
  std::filesystem::remove_all(run.output + "/checkpoints");
  expect_error(Exit::missing_input, "has no checkpoint", [&] { resume(run); });
}

TEST(Training, KeepsTheNewest) {
  const test::TemporaryDirectory folder;
  RunFile run = test::resumable_run(folder, model::OptimizerKind::sgd);
  // Steps are so short that several pass while a checkpoint is written.
  run.steps = 100;
  run.checkpoint = {.every = 1, .keep = 3};
  const Summary summary = train_on(run, "n1", 1);
  const std::vector<std::int64_t> steps = Directory(run.output).steps();
  EXPECT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps.front(), 100);
  EXPECT_EQ(summary.checkpoint_step, 100);
  EXPECT_TRUE(Directory(run.output).remains().empty());
}

/// A learning rate that blows weights up in a few steps.
RunFile exploding_run(const test::TemporaryDirectory& folder) {
  RunFile run = test::resumable_run(folder, model::OptimizerKind::sgd);
  run.learning_rate = {.base = 1e12};
  run.validation = {};
  return run;
}

TEST(Training, NeverSavesNumbersThatAreNotFinite) {
  const test::TemporaryDirectory folder;
  RunFile run = exploding_run(folder);
  run.save_every = 1;
  expect_error(Exit::non_finite, " at step ", [&] { train_on(run, "n2", 2); });
  for (const std::int64_t step : Directory(run.output).steps())
    EXPECT_TRUE(std::isfinite(Directory(run.output).read(step).state.learning_rate));
  model::Graph graph = model::load_network(run.model, run.network);
  engine::Session session(graph, plan::serial_plan(graph), test::alone(), {});
  EXPECT_NO_THROW(load_weights(session, run.output + "/weights.safetensors"));
}

TEST(Training, SkipsStepsWithNumbersThatAreNotFinite) {
  const test::TemporaryDirectory folder;
  RunFile run = exploding_run(folder);
  run.numbers = {.action = NumberOptions::Action::skip, .most_skips = 100};
  for (const int ranks : {1, 2}) {
    run.overwrite = true;
    const Summary summary = train_on(run, ranks == 1 ? "n1" : "n2", ranks);
    EXPECT_EQ(summary.steps, run.steps);
    EXPECT_GT(summary.skipped_steps, 0);
  }
  run.numbers.most_skips = 1;
  expect_error(Exit::non_finite, "1 steps in a row were skipped", [&] { train_on(run, "n1", 1); });
}

TEST(Training, GoesBackBeforeNumbersThatAreNotFinite) {
  const test::TemporaryDirectory folder;
  RunFile run = exploding_run(folder);
  run.numbers.action = NumberOptions::Action::rollback;
  run.steps = 6;
  for (const int ranks : {1, 2}) {
    run.overwrite = true;
    const Summary summary = train_on(run, ranks == 1 ? "n1" : "n2", ranks);
    EXPECT_EQ(summary.steps, run.steps);
    EXPECT_GT(summary.skipped_steps, 0);
  }
}

}  // namespace
}  // namespace orthant::train
