#pragma once

#include "orthant/base/format.hpp"
#include "orthant/plan/request.hpp"
#include "orthant/train/loop.hpp"
#include "tests/data/temporary.hpp"
#include "tests/support/thread_comm.hpp"
#include "tests/train/small_network.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace orthant::test {

/// Convolutions, batch normalisation and dropout, on labels or values, in a run that shuffles and augments.
inline train::RunFile resumable_run(const TemporaryDirectory& folder, model::OptimizerKind kind) {
  train::RunFile run;
  run.model = ORTHANT_TEST_SUPPORT "/small.yaml";
  run.network.mini_batch = 4;
  run.steps = 12;
  run.optimizer = {.kind = kind, .momentum = kind == model::OptimizerKind::sgd ? 0.9 : 0};
  run.learning_rate = {.kind = train::LearningRate::Kind::cosine, .base = 0.01, .warmup_steps = 2};
  run.data.samples = 10;
  run.data.augment = {.flip = {true, true, true}, .permute = true};
  run.data.store = train::DataOptions::Store::memory;
  run.validation.fraction = 0.2;
  run.validation.every = 3;
  run.threads = 1;
  run.checkpoint = {.every = 1, .keep = 100};
  run.output = folder.file("run");
  return run;
}

/// Trains on one rank or on many threads; the summary is rank 0's.
inline train::Summary train_on(const train::RunFile& run, const std::string& grid, int ranks,
                               const train::ResumeOptions& resume = {}) {
  train::TrainOptions options{.name = "x", .resume = resume};
  options.plan = [&](const model::Graph& graph) { return plan::make_plan(graph, {.grid = grid}, ranks); };
  if (ranks == 1) return train::train(run, alone(), options);
  train::Summary summary;
  run_threads(ranks, [&](comm::Comm& comm) {
    const train::Summary mine = train::train(run, comm, options);
    if (comm.rank() == 0) summary = mine;
  });
  return summary;
}

/// A run directory in which a run stopped after `step`.
inline std::string copy_up_to(const TemporaryDirectory& folder, const std::string& from, std::int64_t step,
                              const std::string& name) {
  namespace fs = std::filesystem;
  const std::string to = folder.file(name);
  fs::remove_all(to);
  fs::create_directories(to + "/checkpoints");
  const std::string checkpoint = fmt::format("/checkpoints/step-{}", step);
  fs::copy(from + checkpoint, to + checkpoint, fs::copy_options::recursive);
  for (const char* file : {"metrics.csv", "validation.csv", "log.txt"}) fs::copy(from + "/" + file, to + "/" + file);
  return to;
}

/// The rows of metrics.csv without their seconds.
inline std::vector<std::string> rows_of(const std::string& directory) {
  const std::string text = data::io::read_text(directory + "/metrics.csv");
  std::vector<std::string> rows;
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string row = text.substr(at, end - at);
    rows.push_back(row.substr(0, row.rfind(',')));
  }
  return rows;
}

/// All files of a checkpoint but the manifest.
inline std::map<std::string, std::string> shards_of(const std::string& directory, std::int64_t step) {
  std::map<std::string, std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("{}/checkpoints/step-{}", directory, step))) {
    if (entry.path().extension() == ".safetensors")
      files[entry.path().filename().string()] = data::io::read_text(entry.path().string());
  }
  return files;
}

}  // namespace orthant::test
