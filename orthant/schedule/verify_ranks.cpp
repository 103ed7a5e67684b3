#include "orthant/base/format.hpp"
#include "orthant/schedule/verification.hpp"
#include "orthant/schedule/verify.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace orthant::schedule {
namespace {

/// An exchange of one of the ranks.
struct ExchangeId {
  int rank = -1, exchange = -1;
};

/// One side of a message.
struct Side {
  ExchangeId id;
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
      partners_.emplace_back(schedule.exchanges.size());
    }
  }

  Mistakes run() {
    collect();
    if (mistakes_.empty()) match();
    if (mistakes_.empty()) simulate();
    if (mistakes_.empty()) check_readers();
    return std::move(mistakes_);
  }

 private:
  [[nodiscard]] const Schedule& schedule(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Exchange& exchange(const ExchangeId& id) const {
    return schedule(id.rank).exchanges[static_cast<std::size_t>(id.exchange)];
  }
  [[nodiscard]] const Flight& flight(const ExchangeId& id) const {
    return flights_[static_cast<std::size_t>(id.rank)][static_cast<std::size_t>(id.exchange)];
  }
  std::vector<ExchangeId>& partners(const ExchangeId& id) {
    return partners_[static_cast<std::size_t>(id.rank)][static_cast<std::size_t>(id.exchange)];
  }
  [[nodiscard]] const Step& step(int rank, int index) const {
    return schedule(rank).steps[static_cast<std::size_t>(index)];
  }

  void collect() {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      for (const Step& one : schedule(rank).steps) {
        if (const auto* start = std::get_if<Start>(&one.work)) collect({rank, start->exchange});
      }
    }
  }

  void collect(const ExchangeId& id) {
    const Exchange& one = exchange(id);
    for (const auto* list : {&one.sends, &one.receives}) {
      const bool sends = list == &one.sends;
      for (const Message& message : *list) {
        if (message.peer == id.rank || message.peer >= static_cast<int>(ranks_.size())) {
          mistakes_.push_back(fmt::format("rank {}: {} has a message for rank {}", id.rank, one.name, message.peer));
          continue;
        }
        if (sends) {
          channels_[{id.rank, message.peer, one.tag}].sends.push_back({id, message});
        } else {
          channels_[{message.peer, id.rank, one.tag}].receives.push_back({id, message});
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

  /// Every rank goes on until it finishes an exchange whose other side has not started. None may stay there.
  void simulate() {
    at_.assign(ranks_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
        int& at = at_[static_cast<std::size_t>(rank)];
        while (at < static_cast<int>(schedule(rank).steps.size()) && !awaited(rank)) {
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

  /// The exchange of another rank that `rank` waits for where it is.
  [[nodiscard]] const ExchangeId* awaited(int rank) const {
    const auto* finish = std::get_if<Finish>(&step(rank, at_[static_cast<std::size_t>(rank)]).work);
    if (!finish) return nullptr;
    const auto& all = partners_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(finish->exchange)];
    const auto late = std::find_if(all.begin(), all.end(), [&](const ExchangeId& id) {
      return at_[static_cast<std::size_t>(id.rank)] <= flight(id).start;
    });
    return late == all.end() ? nullptr : &*late;
  }

  /// From `rank`, which waits, to the one it waits for and so on, until one comes again.
  void report_cycle(int rank) {
    std::vector<int> way;
    while (std::find(way.begin(), way.end(), rank) == way.end()) {
      way.push_back(rank);
      rank = awaited(rank)->rank;
    }
    way.erase(way.begin(), std::find(way.begin(), way.end(), rank));
    std::string text;
    for (const int one : way) {
      const ExchangeId& id = *awaited(one);
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
    }
    return last;
  }

  std::span<const Schedule> ranks_;
  std::vector<Footprints> footprints_;                          ///< per rank
  std::vector<std::vector<Flight>> flights_;                    ///< per rank and exchange
  std::vector<std::vector<std::vector<ExchangeId>>> partners_;  ///< per rank and exchange, with repetitions
  std::map<std::tuple<int, int, int>, Channel> channels_;       ///< by sender, receiver and tag
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
