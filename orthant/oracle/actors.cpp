#include "orthant/oracle/actors.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace orthant::oracle {
namespace {

/// True if these kernels move messages along while they compute.
bool polls(model::Algorithm algorithm) {
  using enum model::Algorithm;
  return algorithm == winograd || algorithm == winograd_large || algorithm == winograd_staged;
}

using schedule::Exchange;
using schedule::Message;
using schedule::Round;

double moved_bytes(const Message& message) {
  constexpr double announcement_bytes = 8;
  return message.transport == schedule::Transport::moved ? static_cast<double>(message.bytes) : announcement_bytes;
}

/// What combining costs: every item is read twice, or once, and written.
double combination_seconds(const Round& round, const Setting& setting) {
  double bytes = 0;
  for (const schedule::Combination& one : round.combinations)
    bytes += static_cast<double>(one.count * model::bytes_of(one.type)) * (one.accumulate ? 3 : 2);
  // One thread combines.
  return bytes * setting.threads / setting.memory_bytes_per_second;
}

/// MPI's own collectives: as many rounds as the group has binary digits, and each byte twice over the wire for a sum
/// that all get, once otherwise.
double seconds_of(const schedule::Collective& one, const Link& link) {
  const auto ranks = static_cast<double>(one.ranks.size());
  const double rounds = std::ceil(std::log2(std::max(2.0, ranks)));
  const double bytes = static_cast<double>(std::max(schedule::bytes_given(one), schedule::bytes_taken(one)));
  const double share = bytes * (ranks - 1) / ranks / link.bytes_per_second;
  const double times = one.operation == schedule::Collective::Operation::all_reduce ? 2 : 1;
  return times * (rounds * (link.latency_seconds + 2 * link.message_seconds) + share);
}

/// Fills in actors one after the other.
class Casting {
 public:
  Casting(const Cast& cast, const Prices& prices) : cast_(cast), prices_(prices) {}

  std::vector<Actor> run() {
    for (const RankSchedule& one : cast_.schedules) add(one);
    for (std::size_t actor = 0; actor < actors_.size(); ++actor) index(actor);
    for (std::size_t actor = 0; actor < actors_.size(); ++actor) join(actor);
    return std::move(actors_);
  }

 private:
  /// An end that is looked for in the schedule of a peer.
  struct Wanted {
    int rank = 0, peer = 0;
    bool is_send = false;
    std::int64_t bytes = 0;
    std::size_t round = 0;
    int ordinal = 0;
  };

  void add(const RankSchedule& one) {
    Actor actor{.rank = one.rank, .members = one.members, .schedule = &one.schedule};
    for (const schedule::Step& step : one.schedule.steps) {
      const auto* task = std::get_if<model::Task>(&step.work);
      const auto* conv = task ? std::get_if<model::ConvTask>(task) : nullptr;
      actor.prices.push_back(task ? prices_.of(*task) : Price{});
      actor.polls.push_back(conv && polls(conv->algorithm));
    }
    for (const Exchange& exchange : one.schedule.exchanges) actor.exchanges.push_back(ends_of(actor, exchange));
    actors_.push_back(std::move(actor));
  }

  ExchangeEnds ends_of(Actor& actor, const Exchange& exchange) const {
    ExchangeEnds ends{.kind = exchange.kind, .tag = exchange.tag};
    for (const Round& round : exchange.rounds) {
      RoundEnds part{.first = actor.messages.size(), .is_collective = round.collective.has_value()};
      for (const Message& message : round.sends) add_end(actor, message, true);
      for (const Message& message : round.receives) add_end(actor, message, false);
      part.last = actor.messages.size();
      part.combination_seconds = combination_seconds(round, prices_.setting());
      if (const auto& one = round.collective) part.collective_seconds = seconds_of(*one, link(*one, actor.rank));
      ends.rounds.push_back(part);
    }
    return ends;
  }

  [[nodiscard]] const Link& link(const schedule::Collective& collective, int rank) const {
    const bool inside =
        std::all_of(collective.ranks.begin(), collective.ranks.end(), [&](int peer) { return is_inside(rank, peer); });
    return inside ? prices_.profile().inside : prices_.profile().between;
  }

  [[nodiscard]] bool is_inside(int rank, int peer) const {
    const tensor::Range here = cast_.machines.neighbours(rank);
    return here.lo <= peer && peer < here.hi;
  }

  void add_end(Actor& actor, const Message& message, bool is_send) const {
    MessageEnd end{.is_send = is_send, .inside = is_inside(actor.rank, message.peer), .bytes = moved_bytes(message)};
    const Link& link = end.inside ? prices_.profile().inside : prices_.profile().between;
    end.eager = end.bytes <= static_cast<double>(link.eager_bytes);
    actor.messages.push_back(end);
  }

  void index(std::size_t actor) {
    std::unordered_map<int, int>& by_tag = by_tag_.emplace_back();
    for (std::size_t i = 0; i < actors_[actor].exchanges.size(); ++i)
      by_tag.emplace(actors_[actor].exchanges[i].tag, static_cast<int>(i));
  }

  /// Finds the other end of every message of an actor.
  void join(std::size_t actor) {
    Actor& mine = actors_[actor];
    std::set<int> peers;
    for (std::size_t i = 0; i < mine.exchanges.size(); ++i) {
      const Exchange& exchange = mine.schedule->exchanges[i];
      const std::vector<int> numbers = ordinals(exchange);
      std::size_t number = 0;
      for (std::size_t r = 0; r < exchange.rounds.size(); ++r) {
        const Round& round = exchange.rounds[r];
        std::size_t at = mine.exchanges[i].rounds[r].first;
        for (const std::vector<Message>* list : {&round.sends, &round.receives})
          for (const Message& message : *list)
            peers.insert(join(actor, at++, exchange.tag, message, {.round = r, .ordinal = numbers[number++]}));
        share_link(mine, exchange.tag, r, mine.exchanges[i].rounds[r]);
      }
    }
    for (const int peer : peers)
      if (peer >= 0) actors_[static_cast<std::size_t>(peer)].listeners.push_back(static_cast<int>(actor));
  }

  int join(std::size_t actor, std::size_t at, int tag, const Message& message, Wanted wanted) {
    MessageEnd& end = actors_[actor].messages[at];
    const int peer = cast_.actor_of[static_cast<std::size_t>(message.peer)];
    const auto found = by_tag_[static_cast<std::size_t>(peer)].find(tag);
    if (found == by_tag_[static_cast<std::size_t>(peer)].end()) return -1;
    wanted.rank = actors_[actor].rank;
    wanted.peer = message.peer;
    wanted.is_send = !end.is_send;
    wanted.bytes = message.bytes;
    const int other = find_end(peer, found->second, wanted);
    if (other < 0) return -1;
    end.peer_actor = peer;
    end.peer_message = other;
    return peer;
  }

  /// Per message of a round: the how-manieth of its direction between the two ranks it is in the exchange.
  static std::vector<int> ordinals(const Exchange& exchange) {
    std::map<std::pair<int, bool>, int> counts;
    std::vector<int> result;
    schedule::for_each_message(exchange, [&](const Message& message, bool is_receive) {
      result.push_back(counts[{message.peer, is_receive}]++);
    });
    return result;
  }

  /// In the schedule of the peer itself the end is known by its rank. The first of the peer's class has an end like it:
  /// one of as many bytes, in the same round if there is one.
  [[nodiscard]] int find_end(int actor, int exchange, const Wanted& wanted) const {
    const Actor& peer = actors_[static_cast<std::size_t>(actor)];
    const Exchange& theirs = peer.schedule->exchanges[static_cast<std::size_t>(exchange)];
    const ExchangeEnds& ends = peer.exchanges[static_cast<std::size_t>(exchange)];
    int similar = -1, count = 0;
    std::size_t nearest = theirs.rounds.size() + 1;
    for (std::size_t r = 0; r < theirs.rounds.size(); ++r) {
      const Round& round = theirs.rounds[r];
      const std::vector<Message>& list = wanted.is_send ? round.sends : round.receives;
      const std::size_t first = ends.rounds[r].first + (wanted.is_send ? 0 : round.sends.size());
      const std::size_t away = r > wanted.round ? r - wanted.round : wanted.round - r;
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (peer.rank == wanted.peer && list[i].peer == wanted.rank && count++ == wanted.ordinal)
          return static_cast<int>(first + i);
        if (list[i].bytes == wanted.bytes && away < nearest) {
          nearest = away;
          similar = static_cast<int>(first + i);
        }
        if (nearest == 0 && peer.rank != wanted.peer) return similar;
      }
    }
    return similar;
  }

  /// What all ranks of a machine send to others in the same round goes over one link.
  void share_link(Actor& mine, int tag, std::size_t round, const RoundEnds& ends) {
    double own = 0;
    for (std::size_t i = ends.first; i < ends.last; ++i)
      if (mine.messages[i].is_send && !mine.messages[i].inside) own += mine.messages[i].bytes;
    if (own == 0) return;
    double all = 0;
    const tensor::Range here = cast_.machines.neighbours(mine.rank);
    for (std::int64_t rank = here.lo; rank < here.hi; ++rank) {
      const int actor = cast_.actor_of[static_cast<std::size_t>(rank)];
      const auto found = by_tag_[static_cast<std::size_t>(actor)].find(tag);
      if (found == by_tag_[static_cast<std::size_t>(actor)].end()) continue;
      const Actor& neighbour = actors_[static_cast<std::size_t>(actor)];
      const ExchangeEnds& theirs = neighbour.exchanges[static_cast<std::size_t>(found->second)];
      if (round >= theirs.rounds.size()) continue;
      for (std::size_t i = theirs.rounds[round].first; i < theirs.rounds[round].last; ++i)
        if (neighbour.messages[i].is_send && !neighbour.messages[i].inside) all += neighbour.messages[i].bytes;
    }
    for (std::size_t i = ends.first; i < ends.last; ++i) mine.messages[i].link_share = std::max(1.0, all / own);
  }

  const Cast& cast_;
  const Prices& prices_;
  std::vector<Actor> actors_;
  std::vector<std::unordered_map<int, int>> by_tag_;  ///< per actor: its exchange of a tag
};

}  // namespace

std::vector<Actor> make_actors(const Cast& cast, const Prices& prices) { return Casting(cast, prices).run(); }

}  // namespace orthant::oracle
