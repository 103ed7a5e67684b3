#include "orthant/train/loop.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/engine/session.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/train/chrome_trace.hpp"
#include "orthant/train/mini_batches.hpp"
#include "orthant/train/run_data.hpp"
#include "orthant/train/training.hpp"
#include "orthant/train/validation.hpp"

#include <algorithm>
#include <optional>

namespace orthant::train {
namespace {

/// The network, its plan and its samples, known before memory is taken.
struct Setup {
  Setup(const RunFile& run, const RunSurvey& survey, const TrainOptions& options)
      : graph(model::load_network(run.model, run.network)),
        plan(options.plan(graph)),
        samples(run, graph, survey),
        batches(samples.training(), graph,
                {.shuffle = run.data.shuffle, .seed = run.seed, .augment = run.data.augment}),
        steps(run.steps > 0 ? run.steps : batches.steps_of(run.epochs)) {}

  model::Graph graph;
  plan::Plan plan;
  RunData samples;
  MiniBatches batches;
  std::int64_t steps;
};

/// What the ranks together copy of a network and its optimizer's state for a checkpoint, or to take a step back.
std::int64_t copy_bytes(const RunFile& run, const model::Graph& graph) {
  const std::int64_t copies = (run.checkpoint.on ? 1 : 0) + (run.numbers.action == NumberOptions::Action::skip ? 1 : 0);
  return base::checked_mul(copies * (1 + model::state_count(run.optimizer)) * std::int64_t{sizeof(float)},
                           model::parameter_count(graph));
}

/// What the threads that read samples and write checkpoints take for themselves.
constexpr std::int64_t heaps_bytes = 8 << 20;

/// What this rank takes for moments when weights are made, saved or written to a checkpoint, one parameter after the
/// other: the largest as a whole, on rank 0 also the part of it that a rank has sent, and what the checkpoint's thread
/// writes of it.
std::int64_t passing_bytes(const RunFile& run, const model::Graph& graph, const comm::Comm& comm) {
  std::int64_t largest = 0;
  for (const model::Parameter& parameter : model::parameters(graph))
    largest = std::max(largest, base::checked_mul(model::count(parameter), sizeof(float)));
  const std::int64_t of_checkpoint = run.checkpoint.on ? largest / comm.size() : 0;
  return base::checked_mul(largest, comm.rank() == 0 ? 2 : 1) + of_checkpoint + heaps_bytes;
}

/// Of the mini-batch that is read while another one is computed, what this rank reads.
std::int64_t ahead_bytes(const Setup& setup, const comm::Comm& comm) {
  const data::sets::SampleShape& shape = setup.batches.stream().shape();
  const std::int64_t items = base::checked_add(tensor::volume(shape.input), tensor::volume(shape.target));
  const std::int64_t of_all = base::checked_mul(base::checked_mul(items, sizeof(float)), setup.batches.mini_batch());
  return (of_all + comm.size() - 1) / comm.size();
}

/// Collective.
std::unique_ptr<engine::Session> make_session(const RunFile& run, const Setup& setup, comm::Comm& comm,
                                              const TrainOptions& options) {
  engine::SessionOptions session_options;
  session_options.lowering.optimizer = run.optimizer;
  session_options.threads = options.threads;
  session_options.kernels = options.kernels;
  session_options.kernels.limits.steps_per_epoch = std::min(setup.batches.steps_per_epoch(), setup.steps);
  session_options.other_bytes = copy_bytes(run, setup.graph) / setup.plan.ranks +
                                passing_bytes(run, setup.graph, comm) + ahead_bytes(setup, comm);
  return std::make_unique<engine::Session>(setup.graph, setup.plan, comm, session_options);
}

RunDescription describe(const Setup& setup, const engine::Session& session, const TrainOptions& options) {
  const plan::Plan& plan = session.plan();
  return {.network = model::title_of(setup.graph),
          .parameters = model::parameter_count(setup.graph),
          .samples = setup.samples.training().samples(),
          .steps = setup.steps,
          .arena_bytes = session.engine().placement().arena_bytes,
          .ranks = session.comm().size(),
          .threads = options.threads,
          .remarks = plan.ranks > 1 ? plan::remarks(plan, setup.graph) : std::vector<std::string>{},
          .network_remarks = setup.graph.remarks,
          .notes = {},
          .directory = ""};
}

/// Collective. Null if the run has no validation.
std::unique_ptr<Validation> make_validation(const Setup& setup, const engine::Session& session,
                                            const TrainOptions& options) {
  const data::sets::Dataset* samples = setup.samples.validation();
  if (samples == nullptr) return nullptr;
  return std::make_unique<Validation>(
      *samples, session,
      EvaluatorOptions{.threads = options.threads, .other_bytes = session.engine().placement().arena_bytes});
}

/// The plan of a checkpoint, if it cuts the network as `plan` does: then the run goes on with the same kernels.
plan::Plan plan_to_run(const plan::Plan& plan, const std::optional<Resumed>& resumed) {
  if (!resumed) return plan;
  const std::string& saved = resumed->found.manifest.state.plan;
  if (!checkpoint::is_same_cut(saved, plan::to_json(plan))) return plan;
  return plan::from_json(saved, resumed->directory + ": plan of the checkpoint");
}

}  // namespace

Summary train(const RunFile& run, comm::Comm& comm, const TrainOptions& options) {
  const auto trace_file = comm::agree(comm, [&] { return open_trace(options.trace_path, comm); });
  const RunSurvey survey = survey_run(run, comm);
  const auto setup = comm::agree(comm, [&] { return std::make_unique<Setup>(run, survey, options); });
  const std::optional<Resumed> resumed = find_resumed(options.resume, run.output, options.name, comm);
  comm::agree(comm, [&] { setup->plan = plan_to_run(setup->plan, resumed); });
  const auto session = make_session(run, *setup, comm, options);
  const auto validation = make_validation(*setup, *session, options);
  Training training({.run = run,
                     .comm = comm,
                     .options = options,
                     .graph = setup->graph,
                     .batches = setup->batches,
                     .steps = setup->steps,
                     .session = *session,
                     .validation = validation.get(),
                     .resumed = resumed});
  Summary summary = training.run(describe(*setup, *session, options));
  if (!options.trace_path.empty()) write_trace(trace_file.get(), session->engine(), training.trace(), comm);
  return summary;
}

}  // namespace orthant::train
