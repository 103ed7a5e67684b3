#include "orthant/engine/candidate_tables.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/engine/choices.hpp"
#include "orthant/engine/piece_run.hpp"
#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/conv_error.hpp"
#include "orthant/kernels/task_key.hpp"
#include "orthant/microbatch/contest.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>

namespace orthant::engine {
namespace {

using microbatch::Candidate;
using microbatch::Policy;
using model::Algorithm;
using model::ConvPiece;
using model::ConvTask;
using model::Pass;

constexpr double never = 1e30;

const ConvTask* conv_of(const schedule::Step& step) {
  const auto* task = std::get_if<model::Task>(&step.work);
  return task ? std::get_if<ConvTask>(task) : nullptr;
}

/// The same convolution of fewer samples.
ConvTask with_samples(ConvTask task, std::int64_t samples) {
  task.src.extents.n = samples;
  task.dst.extents.n = samples;
  return task;
}

/// Two, four, eight, ... slabs, as long as they are some cells thick.
std::vector<std::int64_t> slab_counts(const ConvTask& task) {
  constexpr std::int64_t least_cells = 4, most = 32;
  std::vector<std::int64_t> counts;
  for (std::int64_t slabs = 2; slabs <= most && model::most_slabs(task) / slabs >= least_cells; slabs *= 2)
    counts.push_back(slabs);
  return counts;
}

/// Runs one place after the other, on what is in no cache, until some milliseconds have passed.
double cold_seconds(CacheSweep& sweep, int places, const std::function<void(int)>& run) {
  constexpr double enough_seconds = 0.01;
  sweep.run();
  const double start = clock_seconds();
  double spent = 0;
  int place = 0;
  while (place < places && spent < enough_seconds) {
    run(place++);
    spent = clock_seconds() - start;
  }
  return spent / place;
}

/// Those that can run all slabs, each with the most that it takes for one of them.
std::vector<kernels::ConvAlgorithm> algorithms_for(const ConvTask& task, const ConvPiece& piece,
                                                   const TableOptions& options) {
  const std::vector<ConvTask> slabs = model::divided(task, std::span(&piece, 1));
  std::vector<kernels::ConvAlgorithm> found = kernels::conv_algorithms(slabs.front(), options.threads, options.error);
  for (std::size_t i = 1; i < slabs.size(); ++i) {
    std::erase_if(found, [&](kernels::ConvAlgorithm& one) {
      const auto bytes = kernels::conv_scratch_bytes(slabs[i], one.algorithm, options.threads);
      if (bytes) one.scratch_bytes = std::max(one.scratch_bytes, *bytes);
      return !bytes;
    });
  }
  return found;
}

/// Whether an algorithm can add to a gradient that is there.
bool can_add(ConvTask task, Algorithm algorithm, int threads) {
  task.accumulate = true;
  return kernels::conv_scratch_bytes(task, algorithm, threads).has_value();
}

std::string piece_text(const ConvPiece& piece, std::int64_t samples) {
  std::string text = model::name_of(piece.algorithm);
  if (piece.samples != samples) text += fmt::format(" {}", piece.samples);
  if (piece.slabs > 1) text += fmt::format(" in {} slabs", piece.slabs);
  return text;
}

/// Reads what was added to the store for other networks, too.
microbatch::Records load(const microbatch::Store& store, const TableOptions& options) {
  if (const std::string why = store.trouble(); !why.empty()) options.ignored(why);
  return store.load();
}

}  // namespace

std::vector<Kernel> kernels_of(const schedule::Schedule& schedule, const model::Graph& graph) {
  std::map<std::pair<int, Pass>, std::size_t> places;
  std::vector<Kernel> kernels;
  for (const schedule::Step& step : schedule.steps) {
    const ConvTask* conv = conv_of(step);
    if (!conv) continue;
    ConvTask open = *conv;
    open.algorithm = Algorithm::automatic;
    const auto [place, is_new] = places.try_emplace({step.node, conv->pass}, kernels.size());
    if (is_new)
      kernels.push_back(
          {.node = step.node,
           .task = open,
           .step = &step,
           .name = graph.nodes[static_cast<std::size_t>(step.node)].name + "." + model::name_of(conv->pass)});
    Kernel& kernel = kernels[place->second];
    ++kernel.times;
    // Later micro-batches add to the gradients of earlier ones, which not every algorithm can.
    const bool has_more = model::flops(open) > model::flops(kernel.task);
    if (!has_more && (!open.accumulate || kernel.task.accumulate)) continue;
    kernel.task = open;
    kernel.step = &step;
  }
  return kernels;
}

std::string to_text(std::span<const ConvPiece> pieces, std::int64_t samples) {
  std::string text;
  for (std::size_t i = 0; i < pieces.size();) {
    std::size_t equal = i;
    while (equal < pieces.size() && pieces[equal] == pieces[i]) ++equal;
    text += (text.empty() ? "" : ", ") + piece_text(pieces[i], samples);
    if (equal - i > 1) text += fmt::format(" (x{})", equal - i);
    i = equal;
  }
  return text;
}

/// Candidates that are measured together: one number of samples and slabs.
struct CandidateTables::Group {
  ConvPiece piece{};  ///< without an algorithm
  ConvTask task{};    ///< of so many samples
  /// Only algorithms that cannot add to a gradient: they are for the first piece.
  bool first_only = false;
  std::int64_t all_samples = 1;
};

/// Where a piece is run: at so many places, each so many samples after the one before.
struct CandidateTables::Places {
  int count = 1;
  std::int64_t samples = 0;
};

/// What takes part in a comparison.
struct CandidateTables::Entrant {
  std::string name;
  PieceRun run;
};

CandidateTables::CandidateTables(const schedule::Schedule& schedule, const TableOptions& options)
    : schedule_(schedule), options_(options), store_(options.cache_path, kernels::machine_key()) {
  if (!options_.seconds)
    options_.seconds = [sweep = std::make_shared<CacheSweep>()](const ConvTask&, const std::string&, int places,
                                                                const std::function<void(int)>& run) {
      return cold_seconds(*sweep, places, run);
    };
  known_ = load(store_, options_);
}

std::vector<CandidateTables::Group> CandidateTables::groups_of(const Kernel& kernel) const {
  std::vector<Group> groups;
  const std::int64_t all = kernel.task.src.extents.n;
  const bool adds = kernel.task.pass == Pass::backward_weights && !kernel.task.accumulate;
  const auto add = [&](std::int64_t samples, std::int64_t slabs) {
    Group group{
        .piece = {.samples = samples, .slabs = slabs}, .task = with_samples(kernel.task, samples), .all_samples = all};
    if (adds && samples < all) {
      Group first = group;
      first.first_only = true;
      if (slabs == 1) groups.push_back(first);
      group.task.accumulate = true;
    }
    groups.push_back(group);
  };
  for (const std::int64_t samples : microbatch::piece_sizes(options_.policy, all)) add(samples, 1);
  if (options_.policy == Policy::undivided) return groups;
  for (const std::int64_t slabs : slab_counts(kernel.task)) add(1, slabs);
  return groups;
}

std::string CandidateTables::key_of(const Group& group) const {
  const std::string slabs = group.piece.slabs > 1 ? fmt::format(" in {} slabs", group.piece.slabs) : "";
  return (group.first_only ? "first" : "all") + slabs + ": " + choice_key(group.task, options_.threads, options_.error);
}

void CandidateTables::expect(const std::vector<Kernel>& kernels) {
  std::set<std::string> expected;
  for (const Kernel& kernel : kernels) {
    for (const Group& group : groups_of(kernel)) {
      if (known_.contains(key_of(group)) || !expected.insert(key_of(group)).second) continue;
      all_flops_ += static_cast<double>(model::flops(group.task));
      ++all_groups_;
    }
  }
}

StepMemory& CandidateTables::memory_of(const Kernel& kernel) {
  if (memory_step_ != kernel.step) {
    memory_.reset();
    memory_.emplace(schedule_, *kernel.step);
    memory_step_ = kernel.step;
  }
  return *memory_;
}

void CandidateTables::report(const Group* done) {
  if (done) {
    ++done_groups_;
    done_flops_ += static_cast<double>(model::flops(done->task));
  }
  const double left = done_flops_ > 0 ? (all_flops_ - done_flops_) / done_flops_ * spent_seconds_ : 0;
  options_.progress(done_groups_, all_groups_, std::max(0.0, left));
}

void CandidateTables::remember(const std::string& key, std::vector<microbatch::Measured> list) {
  known_[key] = list;
  if (!is_writable_) return;
  is_writable_ = store_.add({{key, std::move(list)}});
  if (!is_writable_) options_.forgotten();
}

std::vector<microbatch::Measured> CandidateTables::measure(const Kernel& kernel, const Group& group) {
  const double began = clock_seconds();
  std::vector<kernels::ConvAlgorithm> algorithms = algorithms_for(group.task, group.piece, options_);
  const std::int64_t room = options_.most_bytes - step_bytes(schedule_, *kernel.step);
  std::erase_if(algorithms, [&](const kernels::ConvAlgorithm& one) {
    return one.scratch_bytes > room || (group.first_only && can_add(group.task, one.algorithm, options_.threads));
  });
  if (algorithms.empty()) return {{.algorithm = "none"}};  // lists in the store are not empty
  std::vector<Entrant> entrants;
  for (const kernels::ConvAlgorithm& one : algorithms) {
    ConvPiece piece = group.piece;
    piece.algorithm = one.algorithm;
    entrants.push_back({piece_text(piece, group.all_samples),
                        {group.task, std::span(&piece, 1), options_.threads, memory_of(kernel).arguments()}});
  }
  const bool moves = can_be_moved(group.task, group.piece.samples);
  const Places places{.count = moves ? static_cast<int>(group.all_samples / group.piece.samples) : 1,
                      .samples = group.piece.samples};
  const Arena scratch(scratch_bytes(entrants));
  const std::vector<double> least = shortest(group.task, entrants, places, scratch);
  std::vector<microbatch::Measured> list;
  for (std::size_t i = 0; i < entrants.size(); ++i)
    list.push_back({model::name_of(algorithms[i].algorithm), least[i], entrants[i].run.workspace_bytes()});
  measured_ += static_cast<int>(list.size());
  spent_seconds_ += clock_seconds() - began;
  return list;
}

std::int64_t CandidateTables::scratch_bytes(const std::vector<Entrant>& entrants) {
  std::int64_t bytes = 64;
  for (const Entrant& one : entrants) bytes = std::max(bytes, one.run.workspace_bytes());
  return bytes;
}

std::vector<double> CandidateTables::shortest(const ConvTask& task, std::vector<Entrant>& entrants,
                                              const Places& places, const Arena& scratch) const {
  constexpr double closer_seconds = 2;
  std::memset(scratch.data(), 0, static_cast<std::size_t>(scratch.bytes()));  // so that no run has page faults
  std::vector<double> least(entrants.size(), never);
  const auto try_once = [&](int i) {
    Entrant& one = entrants[static_cast<std::size_t>(i)];
    const double seconds = options_.seconds(task, one.name, places.count,
                                            [&](int place) { one.run.run(place * places.samples, scratch.data()); });
    double& shortest = least[static_cast<std::size_t>(i)];
    shortest = std::min(shortest, seconds);
    return seconds;
  };
  const double start = clock_seconds();
  // Who wins does not matter: all times go into a table.
  static_cast<void>(
      microbatch::fastest({.candidates = static_cast<int>(entrants.size()),
                           .seconds = try_once,
                           .allows = [](double) { return true; },
                           .allows_closer = [&](double) { return clock_seconds() - start < closer_seconds; }}));
  return least;
}

microbatch::Table CandidateTables::table(const Kernel& kernel) {
  if (step_bytes(schedule_, *kernel.step) > options_.most_bytes)
    base::fail(base::Exit::does_not_fit,
               "{}: its tensors take {} bytes and {} are available to try it; use a smaller mini-batch", kernel.name,
               step_bytes(schedule_, *kernel.step), options_.most_bytes);
  microbatch::Table table{.kernel = kernel.name, .samples = kernel.task.src.extents.n};
  for (const Group& group : groups_of(kernel)) {
    const std::string key = key_of(group);
    if (!known_.contains(key)) {
      report(nullptr);
      remember(key, measure(kernel, group));
      report(&group);
    }
    for (const microbatch::Measured& one : known_[key]) {
      if (!model::algorithm_named(one.algorithm)) continue;
      table.candidates.push_back({.algorithm = one.algorithm,
                                  .samples = group.piece.samples,
                                  .slabs = group.piece.slabs,
                                  .seconds = one.seconds,
                                  .workspace_bytes = one.workspace_bytes,
                                  .first_only = group.first_only});
    }
  }
  return table;
}

std::vector<Way> CandidateTables::compare(const Kernel& kernel, std::vector<Way> ways) {
  const std::int64_t samples = kernel.task.src.extents.n;
  const auto key_of_way = [&](const Way& way) {
    return "whole by " + to_text(way.pieces, samples) + ": " +
           choice_key(kernel.task, options_.threads, options_.error);
  };
  if (std::any_of(ways.begin(), ways.end(), [&](const Way& way) { return !known_.contains(key_of_way(way)); })) {
    std::vector<Entrant> entrants;
    for (const Way& way : ways)
      entrants.push_back(
          {to_text(way.pieces, samples), {kernel.task, way.pieces, options_.threads, memory_of(kernel).arguments()}});
    const Arena scratch(scratch_bytes(entrants));
    const std::vector<double> least = shortest(kernel.task, entrants, {}, scratch);
    for (std::size_t i = 0; i < ways.size(); ++i) {
      PieceRun& run = entrants[i].run;
      run.run(0, scratch.data());
      const double error =
          kernel.task.accumulate ? 0 : kernels::sampled_error(kernel.task, memory_of(kernel).arguments());
      remember(key_of_way(ways[i]), {{entrants[i].name, least[i], run.workspace_bytes(), error}});
      ++measured_;
    }
  }
  for (Way& way : ways) {
    const microbatch::Measured& seen = known_[key_of_way(way)].front();
    way.seconds = seen.seconds;
    way.error = seen.error;
    way.workspace_bytes = seen.workspace_bytes;
  }
  return ways;
}

Way CandidateTables::faster(const Kernel& kernel, Way first, Way other) {
  constexpr double clearly = 0.97;
  const std::vector<Way> ways = compare(kernel, {std::move(first), std::move(other)});
  return ways[1].seconds < clearly * ways[0].seconds ? ways[1] : ways[0];
}

Way CandidateTables::checked(const Kernel& kernel, Way way) { return compare(kernel, {std::move(way)}).front(); }

}  // namespace orthant::engine
