#include "orthant/cli/plan.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/machine_profile.hpp"
#include "orthant/cli/plan_compare.hpp"
#include "orthant/cli/plan_remedies.hpp"
#include "orthant/cli/plan_report.hpp"
#include "orthant/cli/plan_sweep.hpp"
#include "orthant/cli/plan_timeline.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/plan/strategy.hpp"

#include <memory>

namespace orthant::cli {
namespace {

using base::Exit;
using base::fail;

constexpr int most_ranks = 100'000;

oracle::StepOptions step_options(const PlanArguments& arguments, const oracle::Profile& profile, int ranks) {
  using Samples = oracle::StepOptions::Samples;
  oracle::StepOptions options{.threads = arguments.parallel.threads, .ranks_per_machine = arguments.ranks_per_machine};
  if (arguments.optimizer == "adam") options.optimizer = {.kind = model::OptimizerKind::adam};
  // A machine that was measured here shares its cores out; an accelerator is a rank's whatever the others do.
  if (options.threads == 0 && !profile.processor.empty())
    options.threads = std::max(1, profile.threads_per_rank * profile.ranks_per_machine /
                                      std::clamp(options.ranks_per_machine > 0 ? options.ranks_per_machine : ranks, 1,
                                                 profile.ranks_per_machine));
  if (arguments.data == "store") options.samples = Samples::store;
  if (arguments.data == "files") options.samples = Samples::files;
  return options;
}

int ranks_of(const PlanArguments& arguments) {
  const int ranks = ranks_asked(arguments.parallel);
  if (ranks == 0 && arguments.sweep.empty()) fail(Exit::usage, "orthant plan: for how many ranks? Give --ranks");
  if (ranks > most_ranks) fail(Exit::usage, "--ranks {}: plans are made for 1 to {}", ranks, most_ranks);
  return ranks;
}

Question question_of(const PlanArguments& arguments, int ranks) {
  Question question{.graph = load(arguments.network),
                    .profile = machine_profile(arguments.machine),
                    .options = {.ranks = std::max(1, ranks),
                                .memory_bytes_per_rank = arguments.memory_bytes,
                                .micro_batches = arguments.parallel.micro_batches,
                                .step = {}},
                    .samples = arguments.samples};
  question.options.step = step_options(arguments, question.profile, question.options.ranks);
  return question;
}

std::int64_t memory_per_rank(const Question& question, const oracle::Prediction& prediction) {
  const std::int64_t asked = question.options.memory_bytes_per_rank;
  return asked > 0 ? asked : prediction.available_bytes;
}

void write_plan(const PlanArguments& arguments, const planner::Planned& planned) {
  if (arguments.output.empty()) return;
  if (planned.found()) data::io::write_text(arguments.output, plan::to_json(planned.best.plan) + "\n");
}

void run_plan(const PlanArguments& arguments) {
  if (!arguments.compare.empty()) {
    const MeasuredRun run = read_run(data::io::read_text(arguments.compare), arguments.compare);
    return run_compare(arguments, question_of(arguments, run.ranks), run);
  }
  const Question question = question_of(arguments, ranks_of(arguments));
  if (!arguments.sweep.empty()) return run_sweep(arguments, question);
  const bool is_given = names_a_plan(arguments);
  Answer answer{.planned = is_given ? price_given(arguments, question)
                                    : planner::plan_best(question.graph, question.profile, question.options)};
  if (answer.planned.found() && !is_given)
    answer.what_ifs = planner::what_ifs(question.graph, question.profile, question.options, answer.planned.best);
  if (answer.planned.found()) answer.remedies = remedies(question, answer.planned.best);
  if (answer.planned.found() && !is_given) answer.useful = useful_ranks(question, answer.planned, answer.what_ifs);
  write_plan(arguments, answer.planned);
  if (!arguments.timeline.empty() && answer.planned.best.refused.empty())
    write_timeline(arguments.timeline, question, answer.planned.best.plan);
  if (arguments.json) {
    fmt::print("{}\n", to_json(question, answer).dump(2));
  } else {
    fmt::print("{}", to_text(question, answer));
    if (!arguments.output.empty() && answer.planned.found()) fmt::print("plan written to {}\n", arguments.output);
  }
  if (!answer.planned.found()) fail(Exit::does_not_fit, "{}", answer.planned.advice);
}

}  // namespace

bool names_a_plan(const PlanArguments& arguments) {
  const ParallelArguments& cut = arguments.parallel;
  return !cut.grid.empty() || !cut.plan.empty() || (!cut.strategy.empty() && cut.strategy != "auto");
}

planner::Planned price_given(const PlanArguments& arguments, const Question& question) {
  const ParallelArguments& cut = arguments.parallel;
  planner::Planned planned;
  planner::Candidate& best = planned.best;
  best.name = !cut.grid.empty() ? cut.grid : !cut.plan.empty() ? cut.plan : cut.strategy;
  best.plan = plan_for(cut, question.graph, question.options.ranks);
  best.prediction = oracle::predict(question.graph, best.plan, question.profile, question.options.step);
  const std::int64_t room = memory_per_rank(question, best.prediction);
  const std::int64_t needed = best.prediction.memory.total();
  best.fits = room == 0 || needed <= room;
  planned.serial =
      oracle::predict(question.graph, plan::serial_plan(question.graph), question.profile, question.options.step);
  planned.search.predicted = 2;
  if (!best.fits)
    planned.advice = fmt::format("{} does not fit: it needs {:.2f} GiB per rank, and there are {:.2f} GiB", best.name,
                                 static_cast<double>(needed) / (1 << 30), static_cast<double>(room) / (1 << 30));
  return planned;
}

void add_plan(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("plan", "How to cut a network over ranks, what a step then takes, and why; runs nothing");
  const auto arguments = std::make_shared<PlanArguments>();
  add_model(*command, arguments->network);
  add_shape(*command, arguments->network);
  command->add_option("--ranks", arguments->parallel.ranks, "Ranks to plan for")->check(CLI::Range(1, most_ranks));
  command->add_option("--machine", arguments->machine,
                      "abci-v100, lassen-v100, cpu-cluster or a profile file; what `calibrate` measured if not given");
  command
      ->add_option("--memory", arguments->memory_bytes,
                   "Memory of a rank, such as 16GB or 12GiB; the machine's if not given")
      ->transform(CLI::AsSizeValue(true));
  command
      ->add_option("--ranks-per-machine", arguments->ranks_per_machine,
                   "As many as the machine has room for if not given")
      ->check(CLI::Range(1, most_ranks));
  command->add_option("--threads", arguments->parallel.threads, "Threads per rank; the machine's if not given")
      ->check(CLI::Range(1, 4096));
  add_cut(*command, arguments->parallel);
  command->add_option("--optimizer", arguments->optimizer, "sgd (with momentum) or adam")
      ->check(CLI::IsMember({"sgd", "adam"}))
      ->capture_default_str();
  command
      ->add_option("--data", arguments->data,
                   "Where samples come from in every step: none (they are there), store or files")
      ->check(CLI::IsMember({"none", "store", "files"}))
      ->capture_default_str();
  command->add_option("--samples", arguments->samples, "Samples of an epoch, to know how long one takes")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 50));
  command->add_option("--compare", arguments->compare,
                      "A trace of `bench step` or `train`, or what `bench step --layers --json` printed: how far the "
                      "prediction was off");
  CLI::Option* sweep =
      command->add_option("--sweep", arguments->sweep, "Strong and weak scaling over ranks=1..2048, in powers of two");
  command->add_option("--csv", arguments->csv, "Write the sweep to this file as CSV")->needs(sweep);
  command->add_option("--svg", arguments->svg, "Draw the sweep into this file")->needs(sweep);
  command->add_option("--timeline", arguments->timeline, "Write a Chrome trace of the predicted step to this file")
      ->excludes(sweep);
  command->add_option("-o,--output", arguments->output, "Write the best plan to this file, for `train --plan`")
      ->excludes(sweep);
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { run_plan(*arguments); });
}

}  // namespace orthant::cli
