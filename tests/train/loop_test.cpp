#include "orthant/train/loop.hpp"

#include "orthant/base/json.hpp"
#include "orthant/data/formats/safetensors.hpp"
#include "tests/data/temporary.hpp"
#include "tests/train/small_network.hpp"

#include <algorithm>
#include <array>

namespace orthant::train {
namespace {

using base::Exit;
using test::expect_error;

/// CosmoFlow on the smallest volumes it takes.
RunFile small_run(const test::TemporaryDirectory& folder) {
  RunFile run;
  run.model = "cosmoflow";
  run.network = {.input = "4x32x32x32", .mini_batch = 2, .settings = {}};
  run.steps = 24;
  run.optimizer = {.kind = model::OptimizerKind::adam};
  run.learning_rate.base = 1e-3;
  run.data.samples = 4;
  run.threads = 1;
  run.output = folder.file("run");
  return run;
}

std::vector<std::string> lines_of(const std::string& path) {
  const std::string text = data::io::read_text(path);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST(Train, LowersTheLossAndWritesTheRun) {
  const test::TemporaryDirectory folder;
  RunDescription start;
  const Summary summary = train(
      small_run(folder), test::alone(),
      {.name = "x", .trace_path = folder.file("trace.json"), .started = [&](const RunDescription& s) { start = s; }});

  EXPECT_LT(summary.last_loss, 0.7 * summary.first_loss);
  EXPECT_EQ(summary.steps, 24);
  EXPECT_EQ(summary.epochs, 12);
  EXPECT_EQ(start.steps, 24);
  EXPECT_EQ(lines_of(folder.file("run/metrics.csv")).size(), 25U);
  EXPECT_EQ(lines_of(folder.file("run/log.txt")).size(), 2U);
  EXPECT_TRUE(data::formats::SafetensorsFile(summary.weights).tensors().contains("conv1.weight"));
  EXPECT_EQ(load_run(folder.file("run/run.yaml"), {}).steps, 24);
  const base::Json trace = base::parse_json(data::io::read_text(folder.file("trace.json")), "trace");
  EXPECT_GT(trace.at("traceEvents").size(), 24U * 20U);
  EXPECT_TRUE(trace.at("traceEvents").back().at("args").contains("implementation"));
}

TEST(Train, RepeatsItselfToTheBit) {
  const test::TemporaryDirectory folder;
  RunFile run = small_run(folder);
  run.steps = 3;
  std::array<std::vector<std::string>, 2> rows;
  for (auto& table : rows) {
    train(run, test::alone(), {});
    for (const std::string& line : lines_of(folder.file("run/metrics.csv")))
      table.push_back(line.substr(0, line.rfind(',')));
    run.overwrite = true;
  }
  EXPECT_EQ(rows[0], rows[1]);
}

TEST(Train, ContinuesFromSavedWeights) {
  const test::TemporaryDirectory folder;
  RunFile run = small_run(folder);
  const Summary first = train(run, test::alone(), {});
  run.weights = first.weights;
  run.output = folder.file("second");
  run.steps = 4;

  const Summary second = train(run, test::alone(), {});

  EXPECT_LT(second.first_loss, 0.8 * first.first_loss);
}

TEST(Train, StopsAtALossThatIsNotFinite) {
  const test::TemporaryDirectory folder;
  RunFile run = small_run(folder);
  run.optimizer = {};
  run.learning_rate.base = 1e6;

  expect_error(Exit::non_finite, " at step ", [&] { train(run, test::alone(), {}); });
}

TEST(Train, RefusesWhatDoesNotFitIntoMemory) {
  const test::TemporaryDirectory folder;
  RunFile run = small_run(folder);
  run.network.input = "4x256x256x256";
  run.network.mini_batch = 1024;
  run.data.samples = 1024;

  expect_error(Exit::does_not_fit, "GiB are available", [&] { train(run, test::alone(), {}); });
}

}  // namespace
}  // namespace orthant::train
