#include "orthant/train/run_directory.hpp"

#include "tests/data/temporary.hpp"

namespace orthant::train {
namespace {

using base::Exit;
using test::expect_error;

TEST(RunDirectory, NumbersRunsWithoutAName) {
  const test::TemporaryDirectory folder;
  std::filesystem::current_path(folder.file(""));

  EXPECT_EQ(RunDirectory("", "demo", false).path(), "runs/demo-1");
  EXPECT_EQ(RunDirectory("", "demo", false).path(), "runs/demo-2");
  std::filesystem::current_path("/");
}

TEST(RunDirectory, KeepsAnEarlierRun) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("run");
  data::io::write_text(RunDirectory(path, "", false).file("metrics.csv"), "step\n");

  expect_error(Exit::io, "holds a run already", [&] { RunDirectory(path, "", false); });
  EXPECT_EQ(RunDirectory(path, "", true).path(), path);
}

TEST(RunDirectory, RemovesWhatOnlyTheEarlierRunHas) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("run");
  const std::string best = RunDirectory(path, "", false).file("best.safetensors");
  data::io::write_text(best, "x");

  RunDirectory(path, "", false);
  EXPECT_TRUE(std::filesystem::exists(best));
  RunDirectory(path, "", true);
  EXPECT_FALSE(std::filesystem::exists(best));
}

TEST(RunDirectory, BelongsToOneRunAtATime) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("run");
  const RunDirectory directory(path, "", false);

  expect_error(Exit::busy, "is used by another run", [&] { RunDirectory(path, "", true); });
  expect_error(Exit::busy, "is used by another run", [&] { const RunDirectory resumed(path); });
}

TEST(RunDirectory, RefusesAFileOfThatName) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.write("run", "x");

  expect_error(Exit::io, "cannot make the directory", [&] { RunDirectory(path, "", false); });
}

TEST(Metrics, HasOneLinePerStepWithEveryDigit) {
  const test::TemporaryDirectory folder;
  const std::vector<double> losses{0.1, 0.2, 1.0 / 3};
  {
    Metrics metrics(folder.file("m.csv"), {{{model::LossKind::cross_entropy, 1}, {model::LossKind::soft_dice, 1}}});
    metrics.write({.step = 1, .epoch = 1, .learning_rate = 0.01, .seconds = 0.5, .losses = losses});
  }
  EXPECT_EQ(
      data::io::read_text(folder.file("m.csv")),
      "step,epoch,learning_rate,loss,cross_entropy,soft_dice,seconds\n1,1,0.01,0.3333333333333333,0.1,0.2,0.500000\n");
}

}  // namespace
}  // namespace orthant::train
