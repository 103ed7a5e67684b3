#include "orthant/cli/evaluation_run.hpp"

#include "orthant/base/format.hpp"
#include "orthant/cli/auto_plan.hpp"
#include "orthant/cli/kernel_options.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/formats/safetensors.hpp"
#include "orthant/train/weights.hpp"

namespace orthant::cli {
namespace {

train::RunFile load(const EvaluationArguments& arguments) {
  return train::load_run(arguments.run, arguments.overrides);
}

ParallelArguments with_threads(ParallelArguments parallel, const train::RunFile& run) {
  if (parallel.threads == 0) parallel.threads = run.threads;
  return parallel;
}

}  // namespace

void add_evaluation(CLI::App& command, EvaluationArguments& arguments) {
  command.add_option("run", arguments.run, "The run file (.yaml) the network was trained with")->required();
  command.add_option("overrides", arguments.overrides, "Keys of the run file with other values: key=value");
  command.add_option("--weights", arguments.weights, "Weights (safetensors)")->required();
  command.add_flag("--json", arguments.json, "Print JSON");
  add_parallel(command, arguments.parallel);
}

void check_evaluation(const EvaluationArguments& arguments, int ranks) {
  const train::RunFile run = load(arguments);
  check_plan(arguments.parallel, model::load_network(run.model, run.network), ranks);
  const data::formats::SafetensorsFile weights(arguments.weights);
}

EvaluationRun::EvaluationRun(const EvaluationArguments& arguments, comm::Comm& ranks)
    : run(comm::agree(ranks, [&] { return load(arguments); })),
      graph(comm::agree(ranks, [&] { return model::load_network(run.model, run.network); })),
      plan(common_plan(with_threads(arguments.parallel, run), graph, {.mode = schedule::Mode::evaluate}, ranks)),
      comm(ranks) {}

void EvaluationRun::load_weights(const EvaluationArguments& arguments) {
  const ParallelArguments parallel = with_threads(arguments.parallel, run);
  evaluator = std::make_unique<train::Evaluator>(
      graph, plan, comm,
      train::EvaluatorOptions{
          .threads = threads_per_rank(parallel), .other_bytes = 0, .kernels = kernel_options(parallel, comm)});
  comm::agree(comm, [&] { train::load_weights(evaluator->session(), arguments.weights); });
}

void EvaluationRun::print() const {
  fmt::print("network     {}, {} parameters\n", model::title_of(graph), with_commas(model::parameter_count(graph)));
  if (comm.size() > 1) fmt::print("ranks       {}\n", comm.size());
  fmt::print("memory      {} on rank 0\n", bytes_text(evaluator->engine().placement().arena_bytes));
  std::fflush(stdout);
}

}  // namespace orthant::cli
