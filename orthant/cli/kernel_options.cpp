#include "orthant/cli/kernel_options.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/base/printable.hpp"
#include "orthant/cli/file_progress.hpp"
#include "orthant/microbatch/store.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace orthant::cli {
namespace {

std::string limits_text(const engine::MeasuringLimits& limits) {
  const std::string seconds = fmt::format("at most {:.3g} s", std::min(limits.least_seconds, limits.most_seconds));
  const bool epoch_counts = limits.steps_per_epoch > 0 && limits.most_seconds > limits.least_seconds;
  return epoch_counts ? seconds + " or a tenth of the first epoch" : seconds;
}

void print_measured(const engine::Measured& measured) {
  const int all = measured.tasks + measured.left_tasks;
  if (all == 0) return;
  fmt::print(stderr, "measured {} of {} convolutions in {:.1f} s{}\n", measured.tasks, all, measured.seconds,
             measured.left_tasks == 0
                 ? ""
                 : fmt::format("; {} follow the rule until a later run has time and memory to measure them",
                               measured.left_tasks));
}

/// Tells the user how far measuring has come, and what was measured in the end.
class MeasuringReport {
 public:
  void update(const engine::MeasuringProgress& at) {
    if (!progress_) {
      fmt::print(stderr, "measuring {} convolutions on this machine, once; {}\n", at.tasks, limits_text(at.limits));
      progress_ = std::make_unique<FileProgress>("measuring", "convolutions");
    }
    progress_->update(at.done, at.tasks, at.seconds_left);
  }
  void finish(const engine::Measured& measured) {
    progress_.reset();
    print_measured(measured);
  }

 private:
  std::unique_ptr<FileProgress> progress_;
};

}  // namespace

void check_algorithm(const std::string& name) {
  std::vector<std::string> names{"measured", "rule"};
  for (const model::Algorithm algorithm : model::named_algorithms) names.emplace_back(model::name_of(algorithm));
  if (std::find(names.begin(), names.end(), name) == names.end())
    base::fail(base::Exit::usage, "--algorithm: unknown '{}'{}", name, base::suggestion(name, names));
}

engine::ChooseOptions kernel_options(const ParallelArguments& arguments, const comm::Comm& comm) {
  engine::ChooseOptions options{
      .threads = threads_per_rank(arguments),
      .preferred = model::algorithm_named(arguments.algorithm).value_or(model::Algorithm::automatic),
      .measure = arguments.algorithm == "measured",
      .errors = errors_named(arguments.errors),
      .cache_path = microbatch::store_path()};
  if (comm.rank() != 0) return options;
  // Shared, because the functions below are copied together with the options.
  const auto report = std::make_shared<MeasuringReport>();
  options.progress = [report](const engine::MeasuringProgress& at) { report->update(at); };
  options.finished = [report](const engine::Measured& measured) { report->finish(measured); };
  options.mixed_processors = [](int sorts) {
    fmt::print(stderr, "the ranks run on {} sorts of processors: kernels that all of them have are chosen for all\n",
               sorts);
  };
  options.forgotten = [path = options.cache_path] {
    fmt::print(stderr,
               "warning: cannot write '{}', so the next run measures again; set ORTHANT_CACHE to a file that can be "
               "written\n",
               path);
  };
  options.ignored = [path = options.cache_path](const std::string& why) {
    fmt::print(stderr, "warning: '{}' is ignored: {}; remove it, or set ORTHANT_CACHE to another file\n", path,
               base::one_line(why));
  };
  return options;
}

}  // namespace orthant::cli
