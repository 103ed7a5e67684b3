#include "orthant/wrapper/kernel.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>

namespace orthant::wrapper {
namespace {

using Clock = std::chrono::steady_clock;
using microbatch::Policy;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Pieces beyond this gain nothing from being larger: what they do once is nothing against it.
constexpr double most_piece_seconds = 0.05;
/// All samples at once are tried if that takes no longer.
constexpr double most_whole_seconds = 0.2;
/// Below this there is nothing to gain that would be worth a measurement.
constexpr double least_flops = 1e7;
/// Until something is measured, pieces are taken to stay in a cache of this size.
constexpr std::int64_t cached_bytes = std::int64_t{2} << 20;

std::int64_t limit_of(const Options& options) { return options.total_bytes.value_or(options.limit_bytes); }

std::int64_t bytes_per_sample(const Problem& problem) {
  const auto floats = tensor::volume(shape_of(problem.src)) + tensor::volume(shape_of(problem.dst));
  return floats / problem.samples() * static_cast<std::int64_t>(sizeof(float));
}

double flops_of(const Problem& problem) {
  const auto taps = static_cast<double>(tensor::taps(problem.window));
  const auto channels = static_cast<double>(problem.src.dims[1] / problem.groups);
  return 2 * taps * channels * static_cast<double>(tensor::volume(shape_of(problem.dst)));
}

/// The one with the least workspace of those that are about as fast as the fastest.
const microbatch::Division& leanest(const std::vector<microbatch::Division>& front) {
  constexpr double about = 1.02;
  return *std::find_if(front.begin(), front.end(),
                       [&](const microbatch::Division& one) { return one.seconds <= about * front.back().seconds; });
}

/// Every number of samples by the policy and, where a whole sample would not stay in the cache, slabs of one.
std::vector<Cut> cuts_of(const Problem& problem, Policy policy) {
  std::vector<Cut> cuts;
  const std::int64_t rows = std::min(problem.src.dims[2], problem.dst.dims[2]);
  if (policy != Policy::undivided) {
    for (std::int64_t slabs = 2; slabs <= rows / 4; slabs *= 2) {
      if (bytes_per_sample(problem) / slabs >= cached_bytes / 4) cuts.push_back({.slabs = slabs});
    }
    std::reverse(cuts.begin(), cuts.end());
  }
  for (const std::int64_t size : microbatch::piece_sizes(policy, problem.samples())) cuts.push_back({.samples = size});
  return cuts;
}

}  // namespace

Pieces pieces_of(const microbatch::Division& division) {
  Pieces pieces{.seconds = division.seconds, .workspace_bytes = division.workspace_bytes};
  std::vector<microbatch::Candidate> order = division.pieces;
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(b.samples, a.algorithm) < std::pair(a.samples, b.algorithm);
  });
  for (const microbatch::Candidate& piece : order) {
    if (pieces.counts.empty() || pieces.counts.back().first != piece.algorithm)
      pieces.counts.push_back({piece.algorithm, 0});
    ++pieces.counts.back().second;
  }
  return pieces;
}

std::string to_text(const Pieces& pieces) {
  std::string text;
  for (const auto& [label, count] : pieces.counts)
    text += fmt::format("{}{} x {}", text.empty() ? "" : " + ", count, label);
  return text;
}

bool fits(const Problem& problem, int threads, const Options& options, const Library& library) {
  const std::vector<Cut> cuts = cuts_of(problem, options.policy);
  return std::any_of(cuts.begin(), cuts.end(), [&](const Cut& cut) {
    const WayOptions way{
        .core = {.threads = threads, .fast = options.fast}, .limit_bytes = limit_of(options), .ours_only = true};
    return !make_ways(problem, cut, way, library).empty();
  });
}

Kernel::Kernel(const Problem& problem, int threads, Surroundings& surroundings)
    : problem_(problem),
      threads_(threads),
      around_(surroundings),
      text_(fmt::format("preloaded {} threads {} errors {}", to_text(problem), threads,
                        surroundings.options.fast ? "fast" : "exact")),
      limit_(limit_of(surroundings.options)),
      is_known_(flops_of(problem) < least_flops) {}

std::vector<std::unique_ptr<Way>> Kernel::ways_for(const Cut& cut, bool ours_only) const {
  const WayOptions options{
      .core = {.threads = threads_, .fast = around_.options.fast}, .limit_bytes = limit_, .ours_only = ours_only};
  return make_ways(problem_, cut, options, around_.library);
}

std::unique_ptr<Way> Kernel::way_named(const std::string& label) const {
  for (auto& way : ways_for(read_label(label).cut, false)) {
    if (way->label() == label) return std::move(way);
  }
  return nullptr;
}

std::vector<Cut> Kernel::cuts_worth_trying(double sample_seconds) const {
  std::vector<Cut> cuts = cuts_of(problem_, around_.options.policy);
  std::erase_if(cuts, [&](const Cut& cut) {
    const double seconds = static_cast<double>(cut.samples) * sample_seconds;
    const bool is_whole = cut.samples == problem_.samples();
    return cut.samples > 1 && around_.options.policy != Policy::undivided &&
           seconds > (is_whole ? most_whole_seconds : most_piece_seconds);
  });
  return cuts;
}

void Kernel::begin_by_rule() {
  const std::int64_t all = problem_.samples();
  std::vector<Cut> cuts = cuts_of(problem_, around_.options.policy);
  std::reverse(cuts.begin(), cuts.end());
  // The largest pieces that stay in the cache; those that are left if there are none.
  std::stable_partition(cuts.begin(), cuts.end(), [&](const Cut& cut) {
    return cut.samples * bytes_per_sample(problem_) / cut.slabs <= cached_bytes;
  });
  for (const Cut& cut : cuts) {
    if (all % cut.samples != 0) continue;
    auto ways = ways_for(cut, true);
    if (ways.empty()) continue;
    const std::int64_t count = all / cut.samples;
    pieces_ = {.counts = {{ways.front()->label(), count}}, .workspace_bytes = ways.front()->workspace_bytes()};
    runs_.push_back({std::move(ways.front()), count});
    return;
  }
  base::fail(base::Exit::does_not_fit, "no kernel can run {} in {} bytes", text_, limit_);
}

/// What earlier runs of the program have measured, if it was within this limit.
void Kernel::remember() {
  const Known known = around_.store.find(text_);
  const bool is_valid =
      std::all_of(known.limits.begin(), known.limits.end(), [&](const auto& entry) { return entry.second >= limit_; });
  if (!known.costs.empty() && is_valid) choose(known.costs);
}

void Kernel::learn(const Tensors& tensors) {
  const std::lock_guard lock(around_.measuring);
  Known known = around_.store.find(text_);
  const double sample_seconds = first_seconds_ / static_cast<double>(problem_.samples());
  std::vector<std::unique_ptr<Way>> ways;
  std::int64_t bytes = 0;
  const Clock::time_point start = Clock::now();
  for (const Cut& cut : cuts_worth_trying(sample_seconds)) {
    const std::string name = to_text(cut);
    const auto limit = known.limits.find(name);
    if (limit != known.limits.end() && limit->second >= limit_) continue;
    known.limits[name] = limit_;
    for (auto& way : ways_for(cut, false)) {
      bytes = std::max(bytes, way->workspace_bytes());
      ways.push_back(std::move(way));
    }
  }
  if (!ways.empty()) {
    const Workspaces::Loan workspace(around_.workspaces, bytes);
    std::vector<Way*> list;
    for (const auto& way : ways) list.push_back(way.get());
    for (const auto& [label, cost] : measure(list, tensors, problem_.samples(), workspace.data()))
      known.costs[label] = cost;
    around_.store.put(text_, known);
  }
  measuring_seconds_ = since(start);
  is_known_ = true;
  choose(known.costs);
}

/// The program's convolution must not fail because a measurement does.
void Kernel::try_to_learn(const Tensors& tensors) {
  try {
    learn(tensors);
  } catch (const std::exception& error) {
    is_known_ = true;
    fmt::print(stderr, "orthant: {}; the rule decides for {}\n", error.what(), text_);
  }
}

void Kernel::choose(const Costs& costs) {
  microbatch::Table table = table_of(costs, problem_.samples());
  const std::vector<Cut> cuts = cuts_of(problem_, around_.options.policy);
  std::erase_if(table.candidates, [&](const microbatch::Candidate& one) {
    return std::find(cuts.begin(), cuts.end(), Cut{one.samples, one.slabs}) == cuts.end();
  });
  front_ = microbatch::pareto_front(table, limit_);
  if (front_.empty()) return;  // what the rule says stays
  is_known_ = true;
  if (on_front) return on_front(*this);
  adopt(pieces_of(leanest(front_)));
}

void Kernel::assign(const microbatch::Division& division) {
  const std::lock_guard lock(assigning_);
  assigned_ = std::make_unique<Pieces>(pieces_of(division));
}

void Kernel::adopt(const Pieces& pieces) {
  std::vector<Run> runs;
  for (const auto& [label, count] : pieces.counts) {
    auto way = way_named(label);
    if (!way) return;  // measured by others on a machine that has more kernels: what is there stays
    runs.push_back({std::move(way), count});
  }
  runs_ = std::move(runs);
  pieces_ = pieces;
}

void Kernel::run(const Tensors& tensors) {
  const std::lock_guard lock(mutex_);
  if (runs_.empty()) {
    begin_by_rule();
    remember();
  }
  if (!is_known_ && count_ > 0) try_to_learn(tensors);
  std::unique_ptr<Pieces> assigned;
  {
    const std::lock_guard assigning(assigning_);
    assigned = std::move(assigned_);
  }
  if (assigned) adopt(*assigned);
  const Clock::time_point start = Clock::now();
  compute(tensors);
  const double seconds = since(start);
  if (count_++ == 0) first_seconds_ = seconds;
  seconds_ += seconds;
}

void Kernel::compute(const Tensors& tensors) {
  const Workspaces::Loan workspace(around_.workspaces, pieces_.workspace_bytes);
  std::int64_t sample = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Way& way = *runs_[i].way;
    way.begin(tensors, workspace.data());
    for (std::int64_t piece = 0; piece < runs_[i].pieces; ++piece) {
      way.piece(tensors, sample, workspace.data());
      sample += way.samples();
    }
    way.end(tensors, workspace.data(), i > 0);
  }
}

std::optional<Kernel::Report> Kernel::report() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return std::nullopt;
  return Report{.problem = to_text(problem_),
                .pieces = to_text(pieces_),
                .samples = problem_.samples(),
                .runs = count_,
                .workspace_bytes = pieces_.workspace_bytes,
                .threads = threads_,
                .seconds = seconds_,
                .measuring_seconds = measuring_seconds_,
                .measured = !front_.empty()};
}

}  // namespace orthant::wrapper
