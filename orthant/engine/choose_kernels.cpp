#include "orthant/engine/choose_kernels.hpp"

#include "orthant/base/format.hpp"
#include "orthant/base/random.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/task_key.hpp"
#include "orthant/schedule/classes.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <tuple>

namespace orthant::engine {
namespace {

using model::Algorithm;
using model::Pass;

using Runnable = kernels::ConvAlgorithm;

/// A convolution of a rank.
struct Convolution {
  int node = 0;
  Pass pass = Pass::forward;
  std::int64_t flops = 0;
  Algorithm asked = Algorithm::automatic;  ///< by the plan
  std::vector<Runnable> runnable;          ///< in the rule's order
  std::string key;
};

/// Null if the convolution cannot be run this way.
const Runnable* find(const Convolution& convolution, Algorithm algorithm) {
  const auto found = std::find_if(convolution.runnable.begin(), convolution.runnable.end(),
                                  [&](const Runnable& one) { return one.algorithm == algorithm; });
  return found == convolution.runnable.end() ? nullptr : &*found;
}

/// The convolutions of one rank, or the pieces that the plan divides them into. Those that are equal are listed once.
std::vector<Convolution> convolutions_of(const schedule::Schedule& schedule, const ChooseOptions& options) {
  const int threads = options.threads;
  std::map<std::string, std::vector<Runnable>> algorithms;
  std::map<std::tuple<int, Pass, std::string, Algorithm>, Convolution> found;
  for (const schedule::Step& step : schedule.steps) {
    const auto* task = std::get_if<model::Task>(&step.work);
    const auto* conv = task ? std::get_if<model::ConvTask>(task) : nullptr;
    if (!conv) continue;
    model::ConvTask open = *conv;
    open.algorithm = Algorithm::automatic;
    const std::string key = choice_key(open, threads, options.errors);
    if (!algorithms.contains(key)) algorithms[key] = kernels::conv_algorithms(open, threads, model::ErrorClass::fast);
    found.try_emplace({step.node, conv->pass, key, conv->algorithm},
                      Convolution{step.node, conv->pass, schedule::flops(step), conv->algorithm, algorithms[key], key});
  }
  std::vector<Convolution> convolutions;
  convolutions.reserve(found.size());
  for (auto& [identity, convolution] : found) convolutions.push_back(std::move(convolution));
  return convolutions;
}

void check_choices(const plan::Plan& plan, const std::vector<Convolution>& convolutions) {
  for (const Convolution& one : convolutions) {
    const plan::NodePlan& node = plan.nodes[static_cast<std::size_t>(one.node)];
    if (one.asked == Algorithm::automatic || find(one, one.asked)) continue;
    std::vector<std::string> names;
    for (const Runnable& other : one.runnable) names.emplace_back(model::name_of(other.algorithm));
    base::fail(base::Exit::does_not_fit,
               "plan: {} {} asks for {}, which cannot run this convolution on this machine; use {}, or leave the "
               "choice out to have it made here",
               node.node, model::name_of(one.pass), model::name_of(one.asked), fmt::join(names, " or "));
  }
}

std::string to_lines(const std::vector<Convolution>& convolutions) {
  std::string text;
  for (const Convolution& one : convolutions) {
    text += fmt::format("{} {} {} {} {}", one.node, static_cast<int>(one.pass), one.flops, static_cast<int>(one.asked),
                        one.runnable.size());
    for (const Runnable& way : one.runnable)
      text += fmt::format(" {} {}", static_cast<int>(way.algorithm), way.scratch_bytes);
    text += fmt::format(" {}\n", one.key);
  }
  return text;
}

std::vector<Convolution> from_lines(const std::string& text) {
  std::vector<Convolution> convolutions;
  std::istringstream lines(text);
  Convolution one;
  int pass = 0, asked = 0;
  std::size_t ways = 0;
  while (lines >> one.node >> pass >> one.flops >> asked >> ways) {
    one.pass = static_cast<Pass>(pass);
    one.asked = static_cast<Algorithm>(asked);
    one.runnable.resize(ways);
    for (Runnable& way : one.runnable) {
      int algorithm = 0;
      lines >> algorithm >> way.scratch_bytes;
      way.algorithm = static_cast<Algorithm>(algorithm);
    }
    std::getline(lines >> std::ws, one.key);
    convolutions.push_back(one);
  }
  return convolutions;
}

/// One choice for convolutions of the same node and pass, the most expensive first.
plan::KernelChoice choice_for(const std::vector<Convolution>& all, const Choices& fastest, Algorithm preferred) {
  const auto can_run = [&](Algorithm algorithm) {
    return std::all_of(all.begin(), all.end(), [&](const Convolution& one) { return find(one, algorithm); });
  };
  if (can_run(preferred)) return {.algorithm = preferred};
  const auto known = fastest.find(all.front().key);
  if (known != fastest.end() && can_run(known->second.algorithm))
    return {.algorithm = known->second.algorithm, .seconds = known->second.seconds};
  const std::vector<Runnable>& rule = all.front().runnable;
  // There is always one: direct convolutions can run everything.
  return {.algorithm = std::find_if(rule.begin(), rule.end(), [&](const Runnable& way) {
                         return can_run(way.algorithm);
                       })->algorithm};
}

/// What a choice takes on the rank, and for the piece, that needs most; `open` is the one for those that had none.
std::int64_t scratch_bytes(const std::vector<Convolution>& all, Algorithm open) {
  std::int64_t bytes = 0;
  for (const Convolution& one : all)
    bytes = std::max(bytes, find(one, one.asked == Algorithm::automatic ? open : one.asked)->scratch_bytes);
  return bytes;
}

/// Collective. The convolutions of all ranks on rank 0, by node and pass, the most expensive of each first.
std::map<std::pair<int, Pass>, std::vector<Convolution>> gather_convolutions(comm::Comm& comm,
                                                                             const std::vector<Convolution>& mine) {
  const std::string lines = to_lines(mine);
  std::map<std::pair<int, Pass>, std::vector<Convolution>> all;
  for (const std::vector<char>& part : comm::gather(comm, std::span(lines), 0)) {
    for (Convolution& one : from_lines({part.begin(), part.end()})) all[{one.node, one.pass}].push_back(std::move(one));
  }
  for (auto& [identity, convolutions] : all) {
    std::stable_sort(convolutions.begin(), convolutions.end(),
                     [](const Convolution& a, const Convolution& b) { return a.flops > b.flops; });
  }
  return all;
}

/// Collective. Ranks of one class with equal processors and as many threads have the same tasks, and would say the same
/// of them: only the first of these speaks, so that rank 0 hears from few, however many there are.
void find_speakers(const schedule::Classes& classes, comm::Comm& comm, ChooseOptions& options) {
  struct Identity {
    std::uint64_t processor = 0;
    std::int32_t rank_class = 0, threads = 0;
    auto operator<=>(const Identity&) const = default;
  };
  std::uint64_t processor = 0;
  for (const char letter : kernels::machine_key())
    processor = base::keyed(processor, static_cast<unsigned char>(letter));
  const Identity mine{processor, classes.of(comm.rank()), options.threads};
  const std::vector<Identity> all = comm::all_gather(comm, mine);
  options.speaks = std::find(all.begin(), all.end(), mine) - all.begin() == comm.rank();
  std::set<std::uint64_t> processors;
  for (const Identity& one : all) processors.insert(one.processor);
  if (processors.size() > 1 && comm.rank() == 0) options.mixed_processors(static_cast<int>(processors.size()));
}

}  // namespace

plan::Plan choose_kernels(const model::Graph& graph, plan::Plan plan, const schedule::LowerOptions& lowering,
                          comm::Comm& comm, const ChooseOptions& asked) {
  ChooseOptions options = asked;
  options.errors = std::max(options.errors, plan.error);
  const bool measure = options.measure && options.preferred == Algorithm::automatic;
  if (options.preferred != Algorithm::automatic) {
    for (plan::NodePlan& node : plan.nodes) node.kernels = {};
  }
  const auto analysis =
      comm::agree(comm, [&] { return std::make_unique<schedule::Analysis>(graph, plan, lowering.input_gradient); });
  find_speakers(schedule::Classes(*analysis, lowering), comm, options);
  const auto schedule = comm::agree(comm, [&] { return schedule::lower(*analysis, comm.rank(), lowering); });
  const auto mine = comm::agree(comm, [&] {
    // What cannot run is refused before kernels are made for it.
    check_arena(schedule::place(schedule));
    std::vector<Convolution> convolutions = convolutions_of(schedule, options);
    check_choices(plan, convolutions);
    return convolutions;
  });
  const Choices fastest = measure ? find_fastest(schedule, comm, options).choices : Choices{};
  const auto all = gather_convolutions(comm, options.speaks ? mine : std::vector<Convolution>{});
  const std::string chosen = comm::on_root(comm, [&] {
    for (const auto& [identity, convolutions] : all) {
      plan::KernelChoice& choice = plan.nodes[static_cast<std::size_t>(identity.first)].kernels[identity.second];
      if (choice.algorithm == Algorithm::automatic) choice = choice_for(convolutions, fastest, options.preferred);
      choice.scratch_bytes = scratch_bytes(convolutions, choice.algorithm);
    }
    return plan::to_json(plan);
  });
  return plan::from_json(chosen, "the plan of rank 0");
}

}  // namespace orthant::engine
