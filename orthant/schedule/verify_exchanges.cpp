#include "orthant/base/format.hpp"
#include "orthant/schedule/verification.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace orthant::schedule {
namespace {

/// Starts and finishes of every exchange: one each, in this order.
void check_pairs(const Schedule& schedule, Mistakes& mistakes) {
  struct Count {
    int starts = 0, finishes = 0;
  };
  std::vector<Count> counts(schedule.exchanges.size());
  for (const Step& step : schedule.steps) {
    if (const auto* start = std::get_if<Start>(&step.work)) ++counts[static_cast<std::size_t>(start->exchange)].starts;
    const auto* finish = std::get_if<Finish>(&step.work);
    if (!finish) continue;
    Count& count = counts[static_cast<std::size_t>(finish->exchange)];
    ++count.finishes;
    if (count.starts == 0) mistakes.push_back(fmt::format("{} comes before its start", step.name));
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::string& name = schedule.exchanges[i].name;
    if (counts[i].starts != 1) mistakes.push_back(fmt::format("{} is started {} times", name, counts[i].starts));
    if (counts[i].finishes != 1) mistakes.push_back(fmt::format("{} is finished {} times", name, counts[i].finishes));
  }
}

/// Peers that an exchange sends to (false) and receives from (true).
std::set<std::pair<int, bool>> peers_of(const Exchange& exchange) {
  std::set<std::pair<int, bool>> peers;
  for_each_message(exchange, [&](const Message& message, bool is_receive) { peers.emplace(message.peer, is_receive); });
  return peers;
}

bool have_common_peer(const Exchange& a, const Exchange& b) {
  const auto peers = peers_of(a);
  bool found = false;
  for_each_message(b, [&](const Message& message, bool is_receive) {
    found = found || peers.contains({message.peer, is_receive});
  });
  return found;
}

/// Exchanges that are in flight together would take each other's messages.
void check_tags(const Schedule& schedule, Mistakes& mistakes) {
  const std::vector<Flight> flights = flights_of(schedule);
  for (std::size_t i = 0; i < flights.size(); ++i) {
    for (std::size_t k = i + 1; k < flights.size(); ++k) {
      const Exchange& a = schedule.exchanges[i];
      const Exchange& b = schedule.exchanges[k];
      const bool together = flights[i].start < flights[k].finish && flights[k].start < flights[i].finish;
      if (!together || a.tag != b.tag) continue;
      if (have_common_peer(a, b))
        mistakes.push_back(fmt::format("{} and {} are in flight together with tag {}", a.name, b.name, a.tag));
    }
  }
}

/// What stays where it is must be in shared memory, and received where it is.
void check_transports(const Schedule& schedule, const Exchange& exchange, Mistakes& mistakes) {
  const auto root = [&](int buffer) { return buffer_of(schedule, root_of(schedule, buffer)); };
  for_each_message(exchange, [&](const Message& message, bool is_receive) {
    const Buffer buffer = root(message.buffer);
    if (!is_receive) {
      if (buffer.keeper >= 0)
        mistakes.push_back(fmt::format("{} sends {}, which rank {} keeps", exchange.name, buffer.name, buffer.keeper));
      if (message.transport != Transport::moved && !buffer.shared)
        mistakes.push_back(
            fmt::format("{} is to be read in place in {}, which is not shared", exchange.name, buffer.name));
      return;
    }
    const int keeper = message.transport == Transport::in_place ? message.peer : -1;
    if (buffer.keeper != keeper)
      mistakes.push_back(fmt::format("{} receives {} from rank {}, and rank {} keeps it", exchange.name, buffer.name,
                                     message.peer, buffer.keeper));
    if (message.transport == Transport::common && !(buffer.shared && buffer.persistent))
      mistakes.push_back(fmt::format("{} has {} in common, which is not shared", exchange.name, buffer.name));
  });
  for (const Round& round : exchange.rounds) {
    for (const Combination& one : round.combinations) {
      const Buffer buffer = root(one.dst.buffer);
      if (buffer.keeper >= 0)
        mistakes.push_back(fmt::format("{} writes {}, which rank {} keeps", exchange.name, buffer.name, buffer.keeper));
    }
  }
}

void check_life(const Schedule& schedule, int buffer, int step, Mistakes& mistakes) {
  const Buffer& root = buffer_of(schedule, root_of(schedule, buffer));
  if (root.first_step <= step && step <= root.last_step) return;
  mistakes.push_back(fmt::format("step {}, {}, uses {}, which lives from step {} to {}", step,
                                 schedule.steps[static_cast<std::size_t>(step)].name, root.name, root.first_step,
                                 root.last_step));
}

void check_stays(const Schedule& schedule, int buffer, const char* what, Mistakes& mistakes) {
  if (buffer < 0) return;
  const Buffer& root = buffer_of(schedule, root_of(schedule, buffer));
  if (!root.persistent) mistakes.push_back(fmt::format("{} lies in {}, which is not persistent", what, root.name));
}

}  // namespace

Mistakes check_exchanges(const Schedule& schedule) {
  Mistakes mistakes;
  check_pairs(schedule, mistakes);
  if (mistakes.empty()) check_tags(schedule, mistakes);
  for (const Exchange& exchange : schedule.exchanges) check_transports(schedule, exchange, mistakes);
  return mistakes;
}

Mistakes check_lifetimes(const Schedule& schedule) {
  Mistakes mistakes;
  const int last = static_cast<int>(schedule.steps.size()) - 1;
  for (int i = 0; i <= last; ++i) {
    for (const int argument : schedule.steps[static_cast<std::size_t>(i)].arguments)
      if (argument >= 0) check_life(schedule, argument, i, mistakes);
  }
  const std::vector<Flight> flights = flights_of(schedule);
  for (std::size_t i = 0; i < flights.size(); ++i) {
    const auto check = [&](int buffer) {
      check_life(schedule, buffer, flights[i].start, mistakes);
      check_life(schedule, buffer, flights[i].finish, mistakes);
    };
    for (const Round& round : schedule.exchanges[i].rounds) {
      for (const Message& message : round.sends) check(message.buffer);
      for (const Message& message : round.receives) check(message.buffer);
      for (const Combination& one : round.combinations) {
        check(one.src.buffer);
        check(one.dst.buffer);
      }
      if (!round.collective) continue;
      check(round.collective->src.buffer);
      check(round.collective->dst.buffer);
    }
  }
  for (const Buffer& buffer : schedule.buffers) {
    if (buffer.persistent && buffer.inside < 0 && (buffer.first_step != 0 || buffer.last_step != last)) {
      mistakes.push_back(fmt::format("{} is persistent, but lives from step {} to {}", buffer.name, buffer.first_step,
                                     buffer.last_step));
    }
  }
  for (const Port& port : schedule.inputs) check_stays(schedule, port.buffer, "an input", mistakes);
  for (const Port& port : schedule.targets) check_stays(schedule, port.buffer, "a target", mistakes);
  for (const Port& port : schedule.input_gradients) check_stays(schedule, port.buffer, "an input gradient", mistakes);
  for (const int loss : schedule.losses) check_stays(schedule, loss, "a loss", mistakes);
  for (const ParameterBuffers& entry : schedule.parameters)
    check_stays(schedule, entry.value, entry.parameter.name.c_str(), mistakes);
  for (const Port& port : schedule.predictions) {
    if (port.buffer >= 0) check_life(schedule, port.buffer, last, mistakes);
  }
  // A mistake that several steps share is reported once.
  std::sort(mistakes.begin(), mistakes.end());
  mistakes.erase(std::unique(mistakes.begin(), mistakes.end()), mistakes.end());
  return mistakes;
}

}  // namespace orthant::schedule
