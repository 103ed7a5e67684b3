#include "orthant/oracle/predict.hpp"

#include "orthant/base/format.hpp"
#include "orthant/base/random.hpp"
#include "orthant/oracle/memory.hpp"
#include "orthant/oracle/simulation.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

namespace orthant::oracle {
namespace {

using schedule::Kind;

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int threads_of(const Profile& profile, const StepOptions& options) {
  return options.threads > 0 ? options.threads : profile.threads_per_rank;
}

int ranks_per_machine(const plan::Plan& plan, const Profile& profile, const StepOptions& options) {
  int ranks = options.ranks_per_machine > 0 ? options.ranks_per_machine : profile.ranks_per_machine;
  if (plan.exchanges.most_ranks_per_machine > 0) ranks = std::min(ranks, plan.exchanges.most_ranks_per_machine);
  return std::clamp(ranks, 1, plan.ranks);
}

schedule::LowerOptions lower_options(const plan::Plan& plan, const Prices& prices, const StepOptions& options) {
  schedule::LowerOptions lowering{.mode = options.mode, .optimizer = options.optimizer};
  lowering.machines = plan::Machines::alike(plan.ranks, ranks_per_machine(plan, prices.profile(), options));
  lowering.shares_memory = prices.profile().shares_memory;
  lowering.needs.scratch_bytes = [&prices](const model::Task& task) { return prices.scratch_bytes(task); };
  return lowering;
}

/// All ranks of small jobs, one of each class of larger ones.
struct Lowered {
  std::vector<RankSchedule> schedules;
  std::vector<int> actor_of;
  int classes = 0;
  std::int64_t size = 0;  ///< steps and messages
};

std::int64_t count_messages(const schedule::Schedule& schedule) {
  std::int64_t count = 0;
  for (const schedule::Exchange& exchange : schedule.exchanges)
    schedule::for_each_message(exchange, [&](const schedule::Message&, bool) { ++count; });
  return count;
}

void add_sizes(Lowered& lowered) {
  for (const RankSchedule& one : lowered.schedules)
    lowered.size += static_cast<std::int64_t>(one.schedule.steps.size()) + count_messages(one.schedule);
}

/// What most of the time of a schedule depends on: its kernels, and how much each exchange moves inside the machine and
/// to others. Exchanges that move little count as equal.
std::uint64_t mark_of(const RankSchedule& one, const plan::Machines& machines) {
  constexpr std::int64_t little_bytes = 16 << 10;
  std::uint64_t mark = 0;
  const auto add = [&](std::uint64_t value) { mark = base::keyed(mark, value); };
  for (const schedule::Step& step : one.schedule.steps) {
    add(step.work.index());
    if (const auto* task = std::get_if<model::Task>(&step.work)) add(fingerprint(*task));
  }
  const tensor::Range here = machines.neighbours(one.rank);
  for (const schedule::Exchange& exchange : one.schedule.exchanges) {
    std::array<std::int64_t, 4> bytes{};
    schedule::for_each_message(exchange, [&](const schedule::Message& message, bool is_receive) {
      const bool inside = here.lo <= message.peer && message.peer < here.hi;
      bytes[(is_receive ? 1U : 0U) + (inside ? 2U : 0U)] += message.bytes;
    });
    for (const std::int64_t all : bytes) add(all < little_bytes ? 0 : static_cast<std::uint64_t>(all));
  }
  return mark;
}

/// Where there are many classes, those that take about equal time step by step are followed as one.
void join_similar(Lowered& lowered, const plan::Machines& machines) {
  constexpr std::size_t many = 32;
  if (lowered.schedules.size() <= many) return;
  std::unordered_map<std::uint64_t, int> places;
  std::vector<RankSchedule> kept;
  std::vector<int> place_of;
  for (RankSchedule& one : lowered.schedules) {
    const auto [found, is_new] = places.emplace(mark_of(one, machines), static_cast<int>(kept.size()));
    place_of.push_back(found->second);
    if (is_new) {
      kept.push_back(std::move(one));
    } else {
      kept[static_cast<std::size_t>(found->second)].members += one.members;
    }
  }
  for (int& actor : lowered.actor_of) actor = place_of[static_cast<std::size_t>(actor)];
  lowered.schedules = std::move(kept);
}

/// Which of `all` classes are lowered: as many as there is room for, the first and the last among them.
std::vector<int> followed_classes(std::int64_t all, std::int64_t room) {
  constexpr std::int64_t fewest = 4;
  const std::int64_t count = std::min(all, std::max(fewest, room));
  std::vector<int> chosen;
  for (std::int64_t i = 0; i < count; ++i)
    chosen.push_back(static_cast<int>(count == 1 ? 0 : i * (all - 1) / (count - 1)));
  return chosen;
}

/// One rank of each class; the nearest of those that are followed stands for a class that is not.
void lower_classes(Lowered& lowered, const schedule::Analysis& analysis, const schedule::LowerOptions& options,
                   std::int64_t most_messages) {
  const schedule::Classes exact(analysis, options);
  lowered.classes = static_cast<int>(exact.all().size());
  lowered.schedules.push_back({0, 0, schedule::lower(analysis, 0, options)});
  const std::int64_t room =
      most_messages == 0
          ? lowered.classes
          : most_messages / std::max<std::int64_t>(1, count_messages(lowered.schedules.front().schedule));
  std::optional<schedule::Classes> coarse;
  if (lowered.classes > room) coarse.emplace(analysis, options, schedule::Classes::Detail::coarse);
  const schedule::Classes& classes = coarse ? *coarse : exact;
  const std::vector<int> chosen = followed_classes(static_cast<std::int64_t>(classes.all().size()), room);
  for (std::size_t i = 1; i < chosen.size(); ++i) {
    const int rank = classes.all()[static_cast<std::size_t>(chosen[i])].representative;
    lowered.schedules.push_back({rank, 0, schedule::lower(analysis, rank, options)});
  }
  for (int rank = 0; rank < static_cast<int>(lowered.actor_of.size()); ++rank) {
    const int here = classes.of(rank);
    const auto after = std::lower_bound(chosen.begin(), chosen.end(), here);
    const bool before = after != chosen.begin() && here - *(after - 1) < *after - here;
    const auto place = static_cast<std::size_t>(after - chosen.begin()) - (before ? 1 : 0);
    lowered.actor_of[static_cast<std::size_t>(rank)] = static_cast<int>(place);
    ++lowered.schedules[place].members;
  }
}

Lowered lower_all(const model::Graph& graph, const plan::Plan& plan, const schedule::LowerOptions& options,
                  const StepOptions& following) {
  const schedule::Analysis analysis(graph, plan, false);
  Lowered lowered;
  lowered.actor_of.resize(static_cast<std::size_t>(plan.ranks));
  if (plan.ranks <= following.follow_all_up_to) {
    std::iota(lowered.actor_of.begin(), lowered.actor_of.end(), 0);
    for (int rank = 0; rank < plan.ranks; ++rank)
      lowered.schedules.push_back({rank, 1, schedule::lower(analysis, rank, options)});
    lowered.classes = plan.ranks;
    add_sizes(lowered);
    return lowered;
  }
  lower_classes(lowered, analysis, options, following.most_messages);
  add_sizes(lowered);
  join_similar(lowered, options.machines);
  return lowered;
}

Part part_of(Kind kind) {
  switch (kind) {
    case Kind::halo: return Part::halo;
    case Kind::gather: return Part::gather;
    case Kind::redistribution: return Part::redistribution;
    case Kind::gradient: return Part::gradients;
    case Kind::weights: return Part::weights;
    case Kind::statistics: return Part::statistics;
    case Kind::loss: break;
  }
  return Part::loss;
}

Part part_of(const schedule::Step& step, const model::Task& task) {
  if (step.phase == schedule::Phase::update || std::holds_alternative<model::UpdateTask>(task)) return Part::update;
  if (std::holds_alternative<model::LossTask>(task) || std::holds_alternative<model::LossSumsTask>(task))
    return Part::loss;
  if (step.phase == schedule::Phase::forward) return Part::forward;
  const auto* conv = std::get_if<model::ConvTask>(&task);
  const auto* dense = std::get_if<model::DenseTask>(&task);
  const bool weights = (conv && conv->pass == model::Pass::backward_weights) ||
                       (dense && dense->pass == model::Pass::backward_weights) ||
                       std::holds_alternative<model::BiasGradientTask>(task);
  return weights ? Part::backward_weights : Part::backward_data;
}

/// In a pipeline, waiting for a tensor of another stage is waiting for that stage.
Part part_of(const schedule::Schedule& schedule, const schedule::Step& step, bool has_stages) {
  if (const auto* task = std::get_if<model::Task>(&step.work)) return part_of(step, *task);
  const auto* start = std::get_if<schedule::Start>(&step.work);
  const int exchange = start ? start->exchange : std::get<schedule::Finish>(step.work).exchange;
  const Kind kind = schedule.exchanges[static_cast<std::size_t>(exchange)].kind;
  return kind == Kind::redistribution && has_stages ? Part::bubble : part_of(kind);
}

/// Adds up the stretches of the rank that ends last.
void add_parts(Prediction& prediction, const model::Graph& graph, const Actor& actor,
               const std::vector<Stretch>& stretches, bool has_stages) {
  std::vector<int> layer_of(graph.nodes.size(), -1);
  for (const Stretch& stretch : stretches) {
    const schedule::Step& step = actor.schedule->steps[static_cast<std::size_t>(stretch.step)];
    const double seconds = stretch.end - stretch.begin;
    const auto part = static_cast<std::size_t>(part_of(*actor.schedule, step, has_stages));
    prediction.parts[part] += seconds;
    if (stretch.waiting) prediction.exposed_seconds += seconds;
    if (step.node < 0) continue;
    int& layer = layer_of[static_cast<std::size_t>(step.node)];
    if (layer < 0) {
      layer = static_cast<int>(prediction.layers.size());
      prediction.layers.push_back({.name = graph.nodes[static_cast<std::size_t>(step.node)].name});
    }
    LayerTime& time = prediction.layers[static_cast<std::size_t>(layer)];
    (stretch.waiting ? time.waiting_seconds : time.compute_seconds) += seconds;
    time.parts[part] += seconds;
  }
}

/// Errors of different kernels are independent of each other, those of one kernel and of the machine's pace are not.
double error_of(const Prediction& prediction, const Actor& actor, const Profile& profile) {
  std::unordered_map<std::uint64_t, double> by_task;
  for (std::size_t i = 0; i < actor.prices.size(); ++i) {
    const auto* task = std::get_if<model::Task>(&actor.schedule->steps[i].work);
    if (task) by_task[fingerprint(*task)] += actor.prices[i].seconds * actor.prices[i].error;
  }
  double square = 0;
  for (const auto& [task, seconds] : by_task) square += seconds * seconds;
  const double messages = prediction.exposed_seconds * std::max(profile.inside.error, profile.between.error);
  const double pace = prediction.seconds * profile.pace_error;
  return std::sqrt(square + messages * messages + pace * pace) / std::max(1e-12, prediction.seconds);
}

void add_knowledge(Prediction& prediction, const Actor& actor) {
  double all = 0;
  for (const Price& price : actor.prices) {
    prediction.known[static_cast<std::size_t>(price.knowledge)] += price.seconds;
    all += price.seconds;
  }
  for (double& share : prediction.known) share /= std::max(1e-12, all);
}

/// The schedules that may need most memory: those whose buffers are largest.
std::vector<const RankSchedule*> largest(const std::vector<RankSchedule>& schedules) {
  constexpr std::size_t most = 4;
  std::vector<std::pair<std::int64_t, const RankSchedule*>> sized;
  for (const RankSchedule& one : schedules) {
    std::int64_t bytes = 0;
    for (const schedule::Buffer& buffer : one.schedule.buffers) bytes += buffer.inside < 0 ? buffer.bytes : 0;
    sized.emplace_back(bytes, &one);
  }
  const std::size_t kept = std::min(most, sized.size());
  std::partial_sort(sized.begin(), sized.begin() + static_cast<std::ptrdiff_t>(kept), sized.end(),
                    [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const RankSchedule*> result;
  for (std::size_t i = 0; i < kept; ++i) result.push_back(sized[i].second);
  return result;
}

void add_memory(Prediction& prediction, const std::vector<RankSchedule>& schedules, const Profile& profile, int ranks) {
  for (const RankSchedule* one : largest(schedules)) {
    const Memory memory = memory_of(one->schedule, profile.process_bytes);
    if (memory.total() > prediction.memory.total()) prediction.memory = memory;
  }
  prediction.available_bytes = profile.memory_bytes / std::max(1, ranks);
  prediction.fits = prediction.memory.total() <= prediction.available_bytes;
}

/// Seconds until the samples of the next step are there, if nothing else is done.
double input_seconds(const schedule::Schedule& schedule, const Profile& profile, const StepOptions& options,
                     int ranks) {
  double bytes = 0;
  for (const auto* ports : {&schedule.inputs, &schedule.targets})
    for (const schedule::Port& port : *ports)
      bytes += static_cast<double>(schedule.buffers[static_cast<std::size_t>(port.buffer)].bytes);
  if (options.samples == StepOptions::Samples::files && profile.file_bytes_per_second > 0)
    return bytes * ranks / profile.file_bytes_per_second;
  if (options.samples == StepOptions::Samples::store && profile.store_bytes_per_second > 0)
    return bytes / profile.store_bytes_per_second;
  return 0;
}

std::vector<Timeline> timelines_of(const std::vector<RankSchedule>& schedules, const Course& course) {
  std::vector<Timeline> timelines;
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    Timeline timeline{.rank = schedules[i].rank, .members = schedules[i].members, .schedule = schedules[i].schedule};
    for (const Stretch& stretch : course.stretches[i])
      timeline.events.push_back({stretch.step, stretch.begin, stretch.end});
    timelines.push_back(std::move(timeline));
  }
  return timelines;
}

std::int64_t flops_of(const std::vector<RankSchedule>& schedules) {
  std::int64_t flops = 0;
  for (const RankSchedule& one : schedules)
    for (const schedule::Step& step : one.schedule.steps) flops += schedule::flops(step) * one.members;
  return flops;
}

bool has_stages(const plan::Plan& plan) {
  return std::any_of(plan.nodes.begin(), plan.nodes.end(), [](const plan::NodePlan& node) { return node.stage > 0; });
}

/// What each algorithm takes that can run all convolutions of one node and pass, those of all ranks and all pieces.
class SharedChoice {
 public:
  /// The convolutions that follow are another rank's.
  void next_rank() {
    for (auto& [algorithm, cost] : costs_) {
      cost.most = std::max(cost.most, cost.of_rank);
      cost.of_rank = 0;
    }
  }
  void add(const std::vector<PricedAlgorithm>& runnable) {
    if (!started_) {
      for (const PricedAlgorithm& one : runnable) costs_[one.algorithm] = {};
    }
    started_ = true;
    std::erase_if(costs_, [&](const auto& cost) {
      return std::none_of(runnable.begin(), runnable.end(),
                          [&](const PricedAlgorithm& one) { return one.algorithm == cost.first; });
    });
    for (const PricedAlgorithm& one : runnable) {
      const auto cost = costs_.find(one.algorithm);
      if (cost != costs_.end()) cost->second.of_rank += one.price.seconds;
    }
  }
  /// The one that takes the slowest rank least time; `automatic` if none can run all.
  [[nodiscard]] PricedAlgorithm best() const {
    PricedAlgorithm best{.price = {.seconds = std::numeric_limits<double>::infinity()}};
    for (const auto& [algorithm, cost] : costs_) {
      const double seconds = std::max(cost.most, cost.of_rank);
      if (seconds < best.price.seconds) best = {algorithm, {.seconds = seconds}};
    }
    return best;
  }

 private:
  struct Cost {
    double most = 0;     ///< of a rank so far
    double of_rank = 0;  ///< of the rank at hand
  };
  std::map<model::Algorithm, Cost> costs_;
  bool started_ = false;
};

/// The actor whose step tells most about a plan: of those that end last, within a hundredth, the one that waits least.
/// Ranks without work end last too, after waiting for all others.
std::size_t telling_actor(const Course& course) {
  const double last = *std::max_element(course.ends.begin(), course.ends.end());
  std::size_t telling = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t actor = 0; actor < course.ends.size(); ++actor) {
    if (course.ends[actor] < 0.99 * last) continue;
    double waiting = last - course.ends[actor];
    for (const Stretch& stretch : course.stretches[actor])
      if (stretch.waiting) waiting += stretch.end - stretch.begin;
    if (waiting >= least) continue;
    least = waiting;
    telling = actor;
  }
  return telling;
}

}  // namespace

const char* name_of(Part part) {
  constexpr std::array names{"forward",        "backward-data", "backward-weights", "update",     "halo", "gather",
                             "redistribution", "gradients",     "weights",          "statistics", "loss", "bubble",
                             "input"};
  static_assert(names.size() == part_count);
  return names.at(static_cast<std::size_t>(part));
}

plan::Plan with_kernels(const model::Graph& graph, const plan::Plan& plan, const Prices& prices,
                        const StepOptions& options) {
  plan::Plan result = plan;
  if (prices.setting().tasks.empty()) return result;
  schedule::LowerOptions lowering = lower_options(plan, prices, options);
  lowering.needs = {};
  std::map<std::pair<int, model::Pass>, SharedChoice> choices;
  for (const RankSchedule& one : lower_all(graph, plan, lowering, options).schedules) {
    for (auto& [place, choice] : choices) choice.next_rank();
    for (const schedule::Step& step : one.schedule.steps) {
      const auto* task = std::get_if<model::Task>(&step.work);
      const auto* conv = task ? std::get_if<model::ConvTask>(task) : nullptr;
      if (conv && conv->algorithm == model::Algorithm::automatic)
        choices[{step.node, conv->pass}].add(prices.algorithms(*conv));
    }
  }
  for (const auto& [place, choice] : choices) {
    const PricedAlgorithm best = choice.best();
    if (best.algorithm == model::Algorithm::automatic) continue;
    plan::KernelChoice& named = result.nodes[static_cast<std::size_t>(place.first)].kernels[place.second];
    named.algorithm = best.algorithm;
    named.seconds = best.price.seconds;
  }
  return result;
}

Prediction predict(const model::Graph& graph, const plan::Plan& plan, const Profile& profile,
                   const StepOptions& options) {
  const int together = ranks_per_machine(plan, profile, options);
  const Prices prices(profile, threads_of(profile, options), together);
  return predict(graph, plan, prices, options);
}

Prediction predict(const model::Graph& graph, const plan::Plan& plan, const Prices& prices,
                   const StepOptions& options) {
  const Profile& profile = prices.profile();
  const int together = ranks_per_machine(plan, profile, options);
  const double began = clock_seconds();
  const plan::Plan chosen = with_kernels(graph, plan, prices, options);
  const schedule::LowerOptions lowering = lower_options(chosen, prices, options);
  const Lowered lowered = lower_all(graph, chosen, lowering, options);
  const double priced = clock_seconds();

  Simulation simulation(make_actors({lowered.schedules, lowered.actor_of, lowering.machines}, prices), profile);
  const Course course = simulation.run();
  const std::vector<Actor>& cast = simulation.actors();

  Prediction prediction;
  const std::size_t last = telling_actor(course);
  prediction.seconds = *std::max_element(course.ends.begin(), course.ends.end());
  prediction.hidden_seconds = course.hidden[last];
  std::vector<Stretch> told = course.stretches[last];
  if (course.ends[last] < prediction.seconds)
    told.push_back({.step = told.back().step, .begin = course.ends[last], .end = prediction.seconds, .waiting = true});
  add_parts(prediction, graph, cast[last], told, has_stages(chosen));
  const double input = input_seconds(lowered.schedules[last].schedule, profile, options, together);
  prediction.parts[static_cast<std::size_t>(Part::input)] = std::max(0.0, input - prediction.seconds);
  prediction.seconds = std::max(prediction.seconds, input);
  prediction.error = error_of(prediction, cast[last], profile);
  add_knowledge(prediction, cast[last]);
  add_memory(prediction, lowered.schedules, profile, together);
  prediction.flops = flops_of(lowered.schedules);
  for (const RankSchedule& one : lowered.schedules) {
    const schedule::Volume sent = schedule::sent(one.schedule);
    if (sent.bytes + sent.announced_bytes >= prediction.sent.bytes + prediction.sent.announced_bytes)
      prediction.sent = sent;
  }
  if (options.keep_timeline) prediction.timelines = timelines_of(lowered.schedules, course);
  prediction.classes = lowered.classes;
  prediction.size = lowered.size;
  prediction.followed = static_cast<int>(lowered.schedules.size());
  prediction.forced = course.forced;
  prediction.lower_seconds = priced - began;
  prediction.price_seconds = clock_seconds() - priced;
  return prediction;
}

std::string bottleneck(const Prediction& prediction) {
  const auto largest = std::max_element(prediction.parts.begin(), prediction.parts.end());
  const auto part = static_cast<Part>(largest - prediction.parts.begin());
  const double share = *largest / std::max(1e-12, prediction.seconds);
  return fmt::format("{} ({:.0f} %)", name_of(part), 100 * share);
}

}  // namespace orthant::oracle
