#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/auto_plan.hpp"
#include "orthant/cli/bench.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/schedule/schedule.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

namespace orthant::cli {
namespace {

using base::Json;

struct BenchHaloArguments {
  NetworkArguments network;
  ParallelArguments parallel;
  int repeats = 20;
  bool json = false;
};

/// Times of an exchange are those of the slowest rank, best of several; bytes and messages are those of all ranks.
struct Timed {
  std::string name, kind;
  std::int64_t bytes = 0, messages = 0;
  double seconds = 0;
  double latency_seconds = 0;  ///< of the same messages with one byte each
};

/// Collective. Start and wait alone, all ranks at once; a rank without the exchange only takes part in the barriers.
double time_exchange(const schedule::Exchange& exchange, bool whole, int repeats, comm::Comm& comm) {
  std::vector<std::vector<std::byte>> memory;
  const auto placed = [&](const std::vector<schedule::Message>& messages) {
    std::vector<comm::Message> result;
    for (const schedule::Message& message : messages) {
      const std::int64_t bytes = whole ? message.bytes : std::min<std::int64_t>(message.bytes, 1);
      memory.emplace_back(static_cast<std::size_t>(bytes));
      result.push_back({.peer = message.peer, .data = memory.back().data(), .bytes = bytes, .tag = exchange.tag});
    }
    return result;
  };
  std::vector<comm::Round> rounds;
  for (const schedule::Round& round : exchange.rounds)
    rounds.push_back({.sends = placed(round.sends), .receives = placed(round.receives)});
  const auto transfer = comm.bind(rounds, "bench");
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    comm.barrier();
    const auto start = std::chrono::steady_clock::now();
    transfer->start();
    transfer->wait();
    const double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double slowest = comm::max(comm, mine);
    best = i == 0 ? slowest : std::min(best, slowest);
  }
  return best;
}

/// Collective. The tags of all ranks' exchanges in order: the same exchange has the same tag everywhere.
std::set<int> all_tags(const schedule::Schedule& schedule, comm::Comm& comm) {
  std::vector<int> mine;
  for (const schedule::Exchange& exchange : schedule.exchanges) mine.push_back(exchange.tag);
  std::set<int> tags;
  for (const auto& some : comm::gather(comm, std::span<const int>(mine), 0)) tags.insert(some.begin(), some.end());
  std::vector<int> list(tags.begin(), tags.end());
  auto count = static_cast<std::int64_t>(list.size());
  comm::broadcast(comm, std::span(&count, 1), 0);
  list.resize(static_cast<std::size_t>(count));
  comm::broadcast(comm, std::span(list), 0);
  return {list.begin(), list.end()};
}

/// Collective.
std::vector<Timed> time_all(const schedule::Schedule& schedule, int repeats, comm::Comm& comm) {
  std::vector<Timed> result;
  for (const int tag : all_tags(schedule, comm)) {
    const auto found = std::find_if(schedule.exchanges.begin(), schedule.exchanges.end(),
                                    [&](const schedule::Exchange& one) { return one.tag == tag; });
    const bool has = found != schedule.exchanges.end();
    const schedule::Exchange exchange = has ? *found : schedule::Exchange{.name = "", .tag = tag};
    const schedule::Volume volume = schedule::sent(exchange);
    const std::int64_t bytes = volume.bytes + volume.announced_bytes;
    comm::agree(comm, [&] { engine::check_memory(2 * bytes); });
    Timed timed{.bytes = comm::sum(comm, bytes), .messages = comm::sum(comm, volume.messages)};
    timed.seconds = time_exchange(exchange, true, repeats, comm);
    timed.latency_seconds = time_exchange(exchange, false, repeats, comm);
    // Rank 0 may not take part in this exchange; a rank that does gives its name.
    const std::string label = has ? exchange.name + "\n" + schedule::name_of(exchange.kind) : "";
    for (const auto& text : comm::gather(comm, std::span<const char>(label), 0)) {
      const auto end = std::find(text.begin(), text.end(), '\n');
      if (text.empty() || !timed.name.empty()) continue;
      timed.name.assign(text.begin(), end);
      timed.kind.assign(end + 1, text.end());
    }
    result.push_back(std::move(timed));
  }
  return result;
}

double gigabytes_per_second(const Timed& timed) { return static_cast<double>(timed.bytes) / timed.seconds * 1e-9; }

void print_times(const std::vector<Timed>& all, const std::string& network, int ranks, bool json) {
  Json list = Json::array();
  for (const Timed& timed : all) {
    if (!json) {
      fmt::print("{:<32} {:<14} {:>10} in {:>4}  {:>9}  latency {:>9}  {:6.2f} GB/s\n", timed.name, timed.kind,
                 bytes_text(timed.bytes), timed.messages, seconds_text(timed.seconds),
                 seconds_text(timed.latency_seconds), gigabytes_per_second(timed));
    }
    list.push_back({{"name", timed.name},
                    {"kind", timed.kind},
                    {"bytes", timed.bytes},
                    {"messages", timed.messages},
                    {"seconds", timed.seconds},
                    {"latency_seconds", timed.latency_seconds},
                    {"gigabytes_per_second", gigabytes_per_second(timed)}});
  }
  if (json) fmt::print("{}\n", Json{{"network", network}, {"ranks", ranks}, {"exchanges", list}}.dump(2));
  if (!json && all.empty()) fmt::print("one rank exchanges nothing; use e.g. --grid d2\n");
}

void run_bench_halo(const BenchHaloArguments& arguments, comm::Comm& comm) {
  const auto graph = comm::agree(comm, [&] { return load(arguments.network); });
  const plan::Plan plan = common_plan(arguments.parallel, graph, {}, comm);
  const auto schedule = comm::agree(comm, [&] { return schedule::lower(graph, plan, comm.rank(), {}); });
  const std::vector<Timed> all = time_all(schedule, arguments.repeats, comm);
  if (comm.rank() == 0) print_times(all, graph.name, comm.size(), arguments.json);
}

}  // namespace

void add_bench_halo(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("halo", "Time, latency and GB/s of every exchange of a plan, one by one");
  const auto arguments = std::make_shared<BenchHaloArguments>();
  add_model(*command, arguments->network);
  add_shape(*command, arguments->network);
  add_parallel(*command, arguments->parallel);
  command->add_option("--repeats", arguments->repeats, "Measurements of each, of which the best counts")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] {
    run_on_ranks(
        arguments->parallel, [&](int ranks) { plan_for(arguments->parallel, load(arguments->network), ranks); },
        [&](comm::Comm& comm) { run_bench_halo(*arguments, comm); });
  });
}

}  // namespace orthant::cli
