#include "orthant/engine/tune.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/engine/kernel_needs.hpp"
#include "orthant/microbatch/divide.hpp"

#include <algorithm>
#include <map>

namespace orthant::engine {
namespace {

using base::Exit;
using base::fail;
using microbatch::Candidate;
using microbatch::Division;
using microbatch::Table;
using model::ConvPiece;
using Of = WorkspaceLimit::Of;
using Front = std::vector<Division>;

Way way_of(const Division& division) {
  Way way{.seconds = division.seconds, .workspace_bytes = division.workspace_bytes};
  for (const Candidate& piece : division.pieces)
    way.pieces.push_back(
        {.algorithm = *model::algorithm_named(piece.algorithm), .samples = piece.samples, .slabs = piece.slabs});
  return way;
}

/// Pieces that are all alike are said once: a plan begins its list again.
plan::KernelChoice choice_of(const Way& way, std::int64_t samples) {
  plan::KernelChoice choice{
      .algorithm = way.pieces.front().algorithm, .seconds = way.seconds, .scratch_bytes = way.workspace_bytes};
  const ConvPiece whole{.algorithm = choice.algorithm, .samples = samples};
  if (way.pieces != std::vector{whole}) choice.pieces = way.pieces;
  const bool alike = std::all_of(way.pieces.begin(), way.pieces.end(),
                                 [&](const ConvPiece& piece) { return piece == way.pieces.front(); });
  if (alike && !choice.pieces.empty()) choice.pieces.resize(1);
  return choice;
}

bool is_undivided(const Division& division) {
  return division.pieces.size() == 1 && division.pieces.front().slabs == 1;
}

/// The least workspace first, and only what is faster than all before.
Front undivided(const Table& table) {
  Table whole = table;
  std::erase_if(whole.candidates, [&](const Candidate& one) { return one.samples != table.samples || one.slabs > 1; });
  return microbatch::pareto_front(whole);
}

/// The kernels of a plan, their fronts, and what chooses among them.
class Tuning {
 public:
  Tuning(const model::Graph& graph, const plan::Plan& open, const schedule::LowerOptions& lowering,
         const TableOptions& options, const WorkspaceLimit& limit)
      : graph_(graph),
        open_(open),
        lowering_(lowering),
        limit_(limit),
        schedule_(schedule::lower(graph, open, 0, lowering)),
        tables_(schedule_, options) {}

  Tuned run() {
    const std::vector<Kernel> kernels = kernels_of(schedule_, graph_);
    tables_.expect(kernels);
    for (const Kernel& kernel : kernels) {
      const Table table = tables_.table(kernel);
      const double began = clock_seconds();
      fronts_.push_back(microbatch::pareto_front(table));
      wholes_.push_back(undivided(table));
      optimiser_seconds_ += clock_seconds() - began;
    }
    return limit_.of == Of::memory ? within_memory(kernels) : result(kernels, limits(kernels.size(), limit_.bytes));
  }

 private:
  static std::vector<std::int64_t> limits(std::size_t kernels, std::int64_t bytes) {
    return std::vector<std::int64_t>(kernels, bytes);
  }

  /// Tries less and less of what live tensors leave free until the arena, in which places have gaps, is small enough.
  Tuned within_memory(const std::vector<Kernel>& kernels) {
    constexpr int most_tries = 20;
    std::int64_t room = limit_.bytes;
    Tuned tuned;
    for (int i = 0; i < most_tries; ++i) {
      try {
        tuned = result(kernels, free_bytes(kernels, room));
      } catch (const base::Error&) {
        if (i == 0) throw;
        break;  // the message below has the numbers that the user knows
      }
      if (tuned.arena_bytes <= limit_.bytes) return tuned;
      room -= tuned.arena_bytes - limit_.bytes;
    }
    fail(Exit::does_not_fit,
         "--memory: the arena takes {} bytes with the least workspaces that were found, more than {}; "
         "give {} or more, or use a smaller mini-batch",
         tuned.arena_bytes, limit_.bytes, tuned.arena_bytes);
  }

  /// What each kernel may take during its steps, if all memory is `room`.
  [[nodiscard]] std::vector<std::int64_t> free_bytes(const std::vector<Kernel>& kernels, std::int64_t room) const {
    const std::vector<std::int64_t> live = schedule::live_bytes(schedule_);
    std::map<std::pair<int, model::Pass>, std::int64_t> most;
    for (std::size_t i = 0; i < live.size(); ++i) {
      const schedule::Step& step = schedule_.steps[i];
      const auto* task = std::get_if<model::Task>(&step.work);
      const auto* conv = task ? std::get_if<model::ConvTask>(task) : nullptr;
      const std::int64_t needed = live[i] + (conv ? 0 : std::max<std::int64_t>(0, step.scratch_bytes));
      if (needed > room)
        fail(Exit::does_not_fit,
             "--memory: {} alone needs {} bytes, more than the {} that there are; give more, or use a "
             "smaller mini-batch",
             step.name, needed, room);
      if (!conv) continue;
      std::int64_t& bytes = most[{step.node, conv->pass}];
      bytes = std::max(bytes, live[i]);
    }
    std::vector<std::int64_t> free;
    for (const Kernel& kernel : kernels) free.push_back(room - most[{kernel.node, kernel.task.pass}]);
    return free;
  }

  /// The index into each front, as the limit wants it. Throws Error if there is none.
  [[nodiscard]] std::vector<const Division*> chosen(const std::vector<Kernel>& kernels,
                                                    const std::vector<Front>& fronts,
                                                    const std::vector<std::int64_t>& limits) const {
    std::vector<const Division*> divisions;
    if (limit_.of != Of::total) {
      for (std::size_t k = 0; k < fronts.size(); ++k)
        divisions.push_back(microbatch::within_limit(fronts[k], limits[k]));
      return divisions;
    }
    std::vector<Front> weighted = fronts;
    for (std::size_t k = 0; k < fronts.size(); ++k)
      for (Division& division : weighted[k]) division.seconds *= kernels[k].times;
    const auto found = microbatch::within_total(weighted, limit_.bytes);
    for (std::size_t k = 0; k < fronts.size(); ++k) divisions.push_back(found ? &fronts[k][(*found)[k]] : nullptr);
    return divisions;
  }

  [[noreturn]] void refuse(const std::vector<Kernel>& kernels, const std::vector<const Division*>& found,
                           const std::vector<std::int64_t>& limits) const {
    std::int64_t least = 0;
    for (const Front& front : fronts_) least += front.front().workspace_bytes;
    if (limit_.of == Of::total)
      fail(Exit::does_not_fit, "--total: the convolutions take at least {} bytes of workspace together, more than {}",
           least, limit_.bytes);
    const auto k = static_cast<std::size_t>(std::find(found.begin(), found.end(), nullptr) - found.begin());
    fail(Exit::does_not_fit, "{}: {} takes at least {} bytes of workspace, and {} are allowed; give more{}",
         limit_.of == Of::kernel ? "--workspace" : "--memory", kernels[k].name, fronts_[k].front().workspace_bytes,
         std::max<std::int64_t>(0, limits[k]), limit_.of == Of::kernel ? "" : ", or use a smaller mini-batch");
  }

  Tuned result(const std::vector<Kernel>& kernels, const std::vector<std::int64_t>& limits) {
    const double began = clock_seconds();
    const auto after = chosen(kernels, fronts_, limits);
    if (std::find(after.begin(), after.end(), nullptr) != after.end()) refuse(kernels, after, limits);
    const auto before = chosen(kernels, wholes_, limits);
    Tuned tuned{.plan = open_, .kernels = {}, .undivided_seconds = 0.0, .fronts = fronts_};
    tuned.optimiser_seconds = optimiser_seconds_ + clock_seconds() - began;
    for (std::size_t k = 0; k < kernels.size(); ++k) add(tuned, kernels[k], before[k], *after[k]);
    const schedule::Schedule schedule = schedule::lower(graph_, tuned.plan, 0, lowering_);
    tuned.arena_bytes = schedule::place(schedule).arena_bytes;
    tuned.measured = tables_.measured();
    return tuned;
  }

  void add(Tuned& tuned, const Kernel& kernel, const Division* before, const Division& after) {
    TunedKernel entry{.kernel = kernel};
    const bool fits = before && (limit_.of != Of::total || before->workspace_bytes <= after.workspace_bytes);
    if (fits && !is_undivided(after)) {
      entry.after = tables_.faster(kernel, way_of(*before), way_of(after));
    } else {
      entry.after = tables_.checked(kernel, way_of(after));
    }
    if (before) entry.before = tables_.checked(kernel, way_of(*before));
    tuned.seconds += entry.after.seconds * kernel.times;
    if (!before) tuned.undivided_seconds.reset();
    if (tuned.undivided_seconds) *tuned.undivided_seconds += entry.before->seconds * kernel.times;
    tuned.workspace_bytes = std::max(tuned.workspace_bytes, entry.after.workspace_bytes);
    tuned.total_bytes += entry.after.workspace_bytes;
    tuned.plan.nodes[static_cast<std::size_t>(kernel.node)].kernels[kernel.task.pass] =
        choice_of(entry.after, kernel.task.src.extents.n);
    tuned.kernels.push_back(std::move(entry));
  }

  const model::Graph& graph_;
  const plan::Plan& open_;
  const schedule::LowerOptions& lowering_;
  const WorkspaceLimit limit_;
  const schedule::Schedule schedule_;
  CandidateTables tables_;
  std::vector<Front> fronts_, wholes_;
  double optimiser_seconds_ = 0;
};

}  // namespace

Tuned tune(const model::Graph& graph, plan::Plan plan, const schedule::LowerOptions& lowering,
           const TableOptions& options, const WorkspaceLimit& limit) {
  for (plan::NodePlan& node : plan.nodes) node.kernels = {};
  plan.error = options.error;
  schedule::LowerOptions needs = lowering;
  needs.needs = kernel_needs(options.threads);
  return Tuning(graph, plan, needs, options, limit).run();
}

}  // namespace orthant::engine
