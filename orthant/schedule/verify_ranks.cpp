#include "orthant/base/format.hpp"
#include "orthant/schedule/verification.hpp"
#include "orthant/schedule/verify.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace orthant::schedule {
namespace {

/// A round of an exchange of one of the ranks.
struct RoundId {
  int rank = -1, exchange = -1, round = -1;
};

/// One side of a message.
struct Side {
  RoundId id;
  Message message;
};

/// What goes from one rank to another with one tag, in the order in which it starts.
struct Channel {
  std::vector<Side> sends, receives;
};

/// A message with both of its sides.
struct Pair {
  Side send, receive;
};

/// The schedules of all ranks with their messages matched.
class Together {
 public:
  explicit Together(std::span<const Schedule> ranks) : ranks_(ranks) {
    for (const Schedule& schedule : ranks) {
      flights_.push_back(flights_of(schedule));
      footprints_.emplace_back(schedule);
      auto& partners = partners_.emplace_back();
      for (const Exchange& one : schedule.exchanges) partners.emplace_back(one.rounds.size());
      done_.emplace_back(schedule.exchanges.size(), 0);
    }
  }

  Mistakes run() {
    collect();
    if (mistakes_.empty()) match();
    if (mistakes_.empty()) match_calls();
    if (mistakes_.empty()) simulate();
    if (mistakes_.empty()) check_readers();
    return std::move(mistakes_);
  }

 private:
  [[nodiscard]] const Schedule& schedule(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Exchange& exchange(const RoundId& id) const {
    return schedule(id.rank).exchanges[static_cast<std::size_t>(id.exchange)];
  }
  [[nodiscard]] const Flight& flight(const RoundId& id) const {
    return flights_[static_cast<std::size_t>(id.rank)][static_cast<std::size_t>(id.exchange)];
  }
  std::vector<RoundId>& partners(const RoundId& id) {
    return partners_[static_cast<std::size_t>(id.rank)][static_cast<std::size_t>(id.exchange)]
                    [static_cast<std::size_t>(id.round)];
  }
  /// Rounds of an exchange that are over.
  int& done(const RoundId& id) {
    return done_[static_cast<std::size_t>(id.rank)][static_cast<std::size_t>(id.exchange)];
  }
  [[nodiscard]] const Step& step(int rank, int index) const {
    return schedule(rank).steps[static_cast<std::size_t>(index)];
  }

  void collect() {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      for (const Step& one : schedule(rank).steps) {
        if (const auto* start = std::get_if<Start>(&one.work)) collect(rank, start->exchange);
      }
    }
  }

  void collect(int rank, int index) {
    RoundId id{rank, index, 0};
    const Exchange& one = exchange(id);
    for (const Round& round : one.rounds) {
      for (const auto* list : {&round.sends, &round.receives}) {
        const bool sends = list == &round.sends;
        for (const Message& message : *list) {
          if (message.peer >= static_cast<int>(ranks_.size()) || message.peer == id.rank) {
            mistakes_.push_back(fmt::format("rank {}: {} has a message for rank {}", id.rank, one.name, message.peer));
          } else if (sends) {
            channels_[{id.rank, message.peer, one.tag}].sends.push_back({id, message});
          } else {
            channels_[{message.peer, id.rank, one.tag}].receives.push_back({id, message});
          }
        }
      }
      if (round.collective) {
        const auto& ranks = round.collective->ranks;
        if (std::find(ranks.begin(), ranks.end(), id.rank) == ranks.end())
          mistakes_.push_back(fmt::format("{}: rank {} is not among those of its collective", one.name, id.rank));
        calls_[{one.kind, ranks}][id.rank].push_back(id);
      }
      ++id.round;
    }
  }

  [[nodiscard]] const Collective& collective(const RoundId& id) const {
    return *exchange(id).rounds[static_cast<std::size_t>(id.round)].collective;
  }

  /// The ranks of a collective call MPI for each kind in the same order, with the same operation and count.
  void match_calls() {
    for (const auto& [key, calls] : calls_) {
      for (const int rank : key.second) {
        const auto found = calls.find(rank);
        const auto& first = calls.begin()->second;
        if (found == calls.end() || found->second.size() != first.size()) {
          mistakes_.push_back(fmt::format("{}: rank {} does not make the {} calls of MPI that rank {} makes",
                                          exchange(first.front()).name, rank, first.size(), calls.begin()->first));
          continue;
        }
        for (std::size_t i = 0; i < first.size(); ++i) {
          const Collective& mine = collective(found->second[i]);
          const Collective& other = collective(first[i]);
          if (mine.operation != other.operation || mine.count != other.count || mine.type != other.type) {
            mistakes_.push_back(fmt::format("{}: ranks {} and {} call MPI differently", exchange(first[i]).name, rank,
                                            calls.begin()->first));
          }
          for (const auto& [peer, ids] : calls) {
            if (peer != rank && i < ids.size()) partners(found->second[i]).push_back(ids[i]);
          }
        }
      }
    }
  }

  void match() {
    for (const auto& [key, channel] : channels_) {
      const std::size_t count = std::min(channel.sends.size(), channel.receives.size());
      for (std::size_t i = 0; i < count; ++i) match(channel.sends[i], channel.receives[i]);
      for (std::size_t i = count; i < channel.sends.size(); ++i) report_alone(channel.sends[i], "receives");
      for (std::size_t i = count; i < channel.receives.size(); ++i) report_alone(channel.receives[i], "sends");
    }
  }

  void match(const Side& send, const Side& receive) {
    const Exchange& from = exchange(send.id);
    const Exchange& to = exchange(receive.id);
    if (send.message.bytes != receive.message.bytes) {
      mistakes_.push_back(fmt::format("{}: rank {} sends {} bytes to rank {}, which expects {} for {} (tag {})",
                                      from.name, send.id.rank, send.message.bytes, receive.id.rank,
                                      receive.message.bytes, to.name, from.tag));
    }
    if (send.message.transport != receive.message.transport) {
      mistakes_.push_back(fmt::format("{}: rank {} and rank {} do not agree whether it moves", from.name, send.id.rank,
                                      receive.id.rank));
    }
    partners(send.id).push_back(receive.id);
    partners(receive.id).push_back(send.id);
    pairs_.push_back({send, receive});
  }

  void report_alone(const Side& side, const char* verb) {
    const Exchange& one = exchange(side.id);
    mistakes_.push_back(fmt::format("{}: rank {} has a message of {} bytes that rank {} never {} (tag {})", one.name,
                                    side.id.rank, side.message.bytes, side.message.peer, verb, one.tag));
  }

  /// Every rank goes on until it finishes an exchange of which a round is not over. None may stay there. Rounds of
  /// exchanges that have started follow each other wherever the rank is.
  void simulate() {
    at_.assign(ranks_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
        int& at = at_[static_cast<std::size_t>(rank)];
        moved = advance_rounds(rank) || moved;
        while (at < static_cast<int>(schedule(rank).steps.size()) && !waits(rank)) {
          ++at;
          moved = true;
        }
      }
    }
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      if (at_[static_cast<std::size_t>(rank)] < static_cast<int>(schedule(rank).steps.size()))
        return report_cycle(rank);
    }
  }

  [[nodiscard]] bool has_started(const RoundId& id) const {
    return at_[static_cast<std::size_t>(id.rank)] > flight(id).start;
  }
  [[nodiscard]] bool has_begun(const RoundId& id) { return has_started(id) && done(id) >= id.round; }

  bool advance_rounds(int rank) {
    bool moved = false;
    for (int i = 0; i < static_cast<int>(schedule(rank).exchanges.size()); ++i) {
      RoundId id{rank, i, 0};
      for (id.round = done(id); has_started(id) && id.round < rounds_of(id); ++id.round) {
        const std::vector<RoundId>& all = partners(id);
        if (!std::all_of(all.begin(), all.end(), [&](const RoundId& one) { return has_begun(one); })) break;
        ++done(id);
        moved = true;
      }
    }
    return moved;
  }

  [[nodiscard]] int rounds_of(const RoundId& id) const { return static_cast<int>(exchange(id).rounds.size()); }

  [[nodiscard]] bool waits(int rank) {
    const auto* finish = std::get_if<Finish>(&step(rank, at_[static_cast<std::size_t>(rank)]).work);
    if (!finish) return false;
    const RoundId id{rank, finish->exchange, 0};
    return done(id) < rounds_of(id);
  }

  /// The exchange that has not started and that `rank` waits for where it is, directly or because a round of another
  /// rank waits for it.
  [[nodiscard]] RoundId awaited(int rank) {
    RoundId id{rank, std::get<Finish>(step(rank, at_[static_cast<std::size_t>(rank)]).work).exchange, 0};
    for (std::size_t hops = 0; hops <= ranks_.size(); ++hops) {
      id.round = done(id);
      const std::vector<RoundId>& all = partners(id);
      const auto late = std::find_if(all.begin(), all.end(), [&](const RoundId& one) { return !has_begun(one); });
      if (late == all.end()) break;
      id = *late;
      if (!has_started(id)) break;
    }
    return id;
  }

  /// From `rank`, which waits, to the one it waits for and so on, until one comes again.
  void report_cycle(int rank) {
    std::vector<int> way;
    while (std::find(way.begin(), way.end(), rank) == way.end()) {
      way.push_back(rank);
      rank = awaited(rank).rank;
    }
    way.erase(way.begin(), std::find(way.begin(), way.end(), rank));
    std::string text;
    for (const int one : way) {
      const RoundId id = awaited(one);
      text += fmt::format("{}rank {} waits in step {}, {}, for rank {} to reach step {}, {}", text.empty() ? "" : "; ",
                          one, at_[static_cast<std::size_t>(one)], step(one, at_[static_cast<std::size_t>(one)]).name,
                          id.rank, flight(id).start, step(id.rank, flight(id).start).name);
    }
    mistakes_.push_back("no rank of these can go on: " + text);
  }

  /// What a rank reads in place must stay until the sender knows that it was read: by something that the reader has
  /// started to send afterwards.
  void check_readers() {
    for (const Pair& pair : pairs_) {
      if (pair.send.message.transport != Transport::in_place) continue;
      const int reader = pair.receive.id.rank;
      const int sender = pair.send.id.rank;
      const int read = last_read(reader, pair.receive.message);
      const int release = release_of(schedule(sender), pair.send.message);
      const bool knows = std::any_of(pairs_.begin(), pairs_.end(), [&](const Pair& proof) {
        return proof.send.id.rank == reader && proof.receive.id.rank == sender && flight(proof.send.id).start > read &&
               flight(proof.receive.id).finish <= release;
      });
      if (read < 0 || knows) continue;
      mistakes_.push_back(
          fmt::format("rank {} may write over {} after step {}, {}, though rank {} may still read it in step {}, {}",
                      sender, buffer_of(schedule(sender), pair.send.message.buffer).name, release,
                      release < 0 ? "" : step(sender, release).name, reader, read, step(reader, read).name));
    }
  }

  /// True if rounds of the exchange combine something of `root`.
  static bool combines(const Schedule& schedule, const Exchange& exchange, int root) {
    return std::any_of(exchange.rounds.begin(), exchange.rounds.end(), [&](const Round& round) {
      return std::any_of(round.combinations.begin(), round.combinations.end(),
                         [&](const Combination& one) { return root_of(schedule, one.src.buffer) == root; });
    });
  }

  [[nodiscard]] int last_read(int rank, const Message& message) const {
    const int root = root_of(schedule(rank), message.buffer);
    const Footprints& footprints = footprints_[static_cast<std::size_t>(rank)];
    const ByteSet bytes = footprints.of(message);
    int last = -1;
    for (int i = 0; i < static_cast<int>(schedule(rank).steps.size()); ++i) {
      const auto& buffers = step(rank, i).arguments;
      const bool names_it = std::any_of(buffers.begin(), buffers.end(), [&](int buffer) {
        return buffer >= 0 && root_of(schedule(rank), buffer) == root;
      });
      if (!names_it) continue;
      for (const Touch& touch : footprints.of(step(rank, i)))
        if (touch.root == root && touch.bytes.common(bytes) != tensor::Range{}) last = i;
      const auto* finish = std::get_if<Finish>(&step(rank, i).work);
      if (finish &&
          combines(schedule(rank), schedule(rank).exchanges[static_cast<std::size_t>(finish->exchange)], root))
        last = i;
    }
    return last;
  }

  std::span<const Schedule> ranks_;
  std::vector<Footprints> footprints_;        ///< per rank
  std::vector<std::vector<Flight>> flights_;  ///< per rank and exchange
  /// Per rank, exchange and round, with repetitions.
  std::vector<std::vector<std::vector<std::vector<RoundId>>>> partners_;
  std::vector<std::vector<int>> done_;  ///< per rank and exchange
  /// By kind and ranks: the calls of each rank in the order in which they start.
  std::map<std::pair<Kind, std::vector<int>>, std::map<int, std::vector<RoundId>>> calls_;
  std::map<std::tuple<int, int, int>, Channel> channels_;  ///< by sender, receiver and tag
  std::vector<Pair> pairs_;
  std::vector<int> at_;  ///< per rank: the step it is in
  Mistakes mistakes_;
};

}  // namespace

Mistakes verify(std::span<const Schedule> ranks) {
  Mistakes mistakes;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const std::string& one : verify(ranks[rank])) mistakes.push_back(fmt::format("rank {}: {}", rank, one));
  }
  return mistakes.empty() ? Together(ranks).run() : mistakes;
}

}  // namespace orthant::schedule
