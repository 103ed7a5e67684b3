#include "orthant/schedule/bucket_rounds.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using plan::Form;
using tensor::Range;

constexpr std::int64_t float_bytes = sizeof(float);

std::int64_t bytes_of(const Range& items) { return (items.hi - items.lo) * float_bytes; }

class Builder {
 public:
  explicit Builder(const BucketExchange& exchange) : exchange_(exchange) { rounds_.reserve(16); }

  [[nodiscard]] const Levels& levels() const { return exchange_.levels; }
  [[nodiscard]] int place() const { return levels().inside_place; }
  [[nodiscard]] int owner() const { return levels().across_place; }
  [[nodiscard]] int peer(int owner) const { return levels().across[owner]; }
  [[nodiscard]] int machine_count() const { return levels().across.size(); }
  [[nodiscard]] Form across_form() const { return exchange_.form.of(machine_count()); }

  /// The items of `size` consecutive owners in this rank's region.
  [[nodiscard]] Range items(int first, int size) const {
    return {exchange_.parts.piece(place(), first).lo, exchange_.parts.piece(place(), first + size - 1).hi};
  }
  [[nodiscard]] Range region(int index) const { return exchange_.parts.region(index); }

  void begin_round() {
    rounds_.emplace_back();
    staged_bytes_ = 0;
  }
  void send(int peer, const Range& items, Transport transport = Transport::moved) {
    rounds_.back().sends.push_back(message(peer, in_bucket(items), items, transport));
  }
  void receive(int peer, const Range& items, Transport transport = Transport::moved) {
    rounds_.back().receives.push_back(message(peer, in_bucket(items), items, transport));
  }
  /// What arrives is added to what is there, or left for the caller.
  void receive_to_add(int peer, const Range& items) {
    const Piece place = stage(bytes_of(items));
    rounds_.back().receives.push_back(message(peer, place, items, Transport::moved));
    add(items, place);
  }
  void read_in_place(int peer, const Range& items, int kept) {
    rounds_.back().receives.push_back(message(peer, {kept, 0}, items, Transport::in_place));
    add(items, {kept, 0});
  }
  void call(Collective::Operation operation) {
    const Range own = items(owner(), 1);
    const bool reduces = operation == Collective::Operation::reduce_scatter;
    Collective collective{.operation = operation,
                          .ranks = levels().across.to_list(),
                          .src = in_bucket(reduces ? region(place()) : own),
                          .dst = reduces ? stage(bytes_of(own)) : in_bucket(region(place())),
                          .count = own.hi - own.lo};
    if (reduces)
      rounds_.back().combinations.push_back(
          {.dst = in_bucket(own), .src = collective.dst, .count = collective.count, .accumulate = false});
    rounds_.back().collective = std::move(collective);
  }

  BucketRounds take(bool leaves_last) {
    BucketRounds result{.rounds = std::move(rounds_), .staging_bytes = staging_bytes_};
    if (!leaves_last || result.rounds.size() != 1 || result.rounds.front().collective) return result;
    for (const Combination& one : result.rounds.front().combinations) result.arrived.push_back(one.src);
    result.rounds.front().combinations.clear();
    return result;
  }

 private:
  [[nodiscard]] Piece in_bucket(const Range& items) const { return {exchange_.buffer, items.lo * float_bytes}; }
  static Message message(int peer, const Piece& place, const Range& items, Transport transport) {
    return {.peer = peer,
            .buffer = place.buffer,
            .offset_bytes = place.offset_bytes,
            .bytes = bytes_of(items),
            .transport = transport};
  }
  Piece stage(std::int64_t bytes) {
    const Piece place{exchange_.staging, staged_bytes_};
    staged_bytes_ += bytes;
    staging_bytes_ = std::max(staging_bytes_, staged_bytes_);
    return place;
  }
  void add(const Range& items, const Piece& src) {
    rounds_.back().combinations.push_back({.dst = in_bucket(items), .src = src, .count = items.hi - items.lo});
  }

  const BucketExchange& exchange_;
  std::vector<Round> rounds_;
  std::int64_t staged_bytes_ = 0;   ///< in this round
  std::int64_t staging_bytes_ = 0;  ///< in the round that takes most
};

/// Every active member of a machine gets the items of its region from all members.
void reduce_inside(Builder& builder, const BucketExchange& exchange) {
  const Levels& levels = exchange.levels;
  const int count = levels.inside.size();
  if (count == 1) return;
  builder.begin_round();
  std::size_t other = 0;
  for (int i = 0; i < count; ++i) {
    if (i == builder.place()) continue;
    const int peer = levels.inside[i];
    if (i < levels.active) builder.send(peer, builder.region(i), exchange.inside);
    if (levels.is_active() && exchange.inside == Transport::in_place)
      builder.read_in_place(peer, builder.region(builder.place()), exchange.kept[other]);
    if (levels.is_active() && exchange.inside == Transport::moved)
      builder.receive_to_add(peer, builder.region(builder.place()));
    ++other;
  }
}

void spread_inside(Builder& builder, const BucketExchange& exchange) {
  const Levels& levels = exchange.levels;
  const int count = levels.inside.size();
  if (count == 1) return;
  builder.begin_round();
  for (int i = 0; i < count; ++i) {
    if (i == builder.place()) continue;
    const int peer = levels.inside[i];
    if (levels.is_active()) builder.send(peer, builder.region(builder.place()), exchange.inside);
    if (i < levels.active) builder.receive(peer, builder.region(i), exchange.inside);
  }
}

void reduce_directly(Builder& builder) {
  builder.begin_round();
  for (int i = 0; i < builder.machine_count(); ++i) {
    if (i == builder.owner()) continue;
    builder.send(builder.peer(i), builder.items(i, 1));
    builder.receive_to_add(builder.peer(i), builder.items(builder.owner(), 1));
  }
}

void spread_directly(Builder& builder) {
  builder.begin_round();
  for (int i = 0; i < builder.machine_count(); ++i) {
    if (i == builder.owner()) continue;
    builder.send(builder.peer(i), builder.items(builder.owner(), 1));
    builder.receive(builder.peer(i), builder.items(i, 1));
  }
}

/// Halving: in every round the owners of a block share its items out among its parts.
void reduce_recursively(Builder& builder, int owners) {
  const int extra = builder.owner() - owners;
  if (extra >= 0) {
    builder.begin_round();
    return builder.send(builder.peer(extra), builder.items(0, owners));
  }
  if (builder.owner() + owners < builder.machine_count()) {
    builder.begin_round();
    builder.receive_to_add(builder.peer(builder.owner() + owners), builder.items(0, owners));
  }
  for (const Split& split : splits_of(owners, builder.owner())) {
    builder.begin_round();
    for (int i = 0; i < split.count; ++i) {
      if (i == split.digit) continue;
      const int peer = builder.peer(builder.owner() + (i - split.digit) * split.size);
      builder.send(peer, builder.items(split.first + i * split.size, split.size));
      builder.receive_to_add(peer, builder.items(split.first + split.digit * split.size, split.size));
    }
  }
}

/// Doubling: the same the other way round.
void spread_recursively(Builder& builder, int owners) {
  const int extra = builder.owner() - owners;
  if (extra >= 0) {
    builder.begin_round();
    return builder.receive(builder.peer(extra), builder.items(0, owners));
  }
  std::vector<Split> splits = splits_of(owners, builder.owner());
  std::reverse(splits.begin(), splits.end());
  for (const Split& split : splits) {
    builder.begin_round();
    for (int i = 0; i < split.count; ++i) {
      if (i == split.digit) continue;
      const int peer = builder.peer(builder.owner() + (i - split.digit) * split.size);
      builder.send(peer, builder.items(split.first + split.digit * split.size, split.size));
      builder.receive(peer, builder.items(split.first + i * split.size, split.size));
    }
  }
  if (builder.owner() + owners < builder.machine_count()) {
    builder.begin_round();
    builder.send(builder.peer(builder.owner() + owners), builder.items(0, owners));
  }
}

/// The sum of a piece goes once around the ring and ends at its owner.
void reduce_around(Builder& builder) {
  const int count = builder.machine_count();
  const auto owner_at = [&](int distance) { return (builder.owner() - distance + 2 * count) % count; };
  for (int round = 0; round + 1 < count; ++round) {
    builder.begin_round();
    builder.send(builder.peer(owner_at(-1)), builder.items(owner_at(1 + round), 1));
    builder.receive_to_add(builder.peer(owner_at(1)), builder.items(owner_at(2 + round), 1));
  }
}

void spread_around(Builder& builder) {
  const int count = builder.machine_count();
  const auto owner_at = [&](int distance) { return (builder.owner() - distance + 2 * count) % count; };
  for (int round = 0; round + 1 < count; ++round) {
    builder.begin_round();
    builder.send(builder.peer(owner_at(-1)), builder.items(owner_at(round), 1));
    builder.receive(builder.peer(owner_at(1)), builder.items(owner_at(1 + round), 1));
  }
}

}  // namespace

Range BucketParts::own(const Levels& levels) const {
  if (!levels.is_active() || levels.across_place >= owners) return {};
  return piece(levels.inside_place, levels.across_place);
}

BucketParts parts_of_bucket(const Levels& levels, const plan::GroupForm& form, std::int64_t items,
                            std::int64_t granule) {
  BucketParts parts{.regions = levels.active, .owners = levels.machines};
  if (const Form own = form.of(parts.owners); own == Form::recursive || own == Form::tree)
    parts.owners = smooth_part(parts.owners);
  const std::int64_t granules = (items + granule - 1) / granule;
  const std::int64_t pieces = std::int64_t{parts.regions} * parts.owners;
  parts.piece_items = (granules + pieces - 1) / pieces * granule;
  return parts;
}

BucketRounds reduce_rounds(const BucketExchange& exchange, bool leaves_last) {
  Builder builder(exchange);
  reduce_inside(builder, exchange);
  if (builder.machine_count() > 1) {
    switch (builder.across_form()) {
      case Form::direct: reduce_directly(builder); break;
      case Form::tree:
      case Form::recursive: reduce_recursively(builder, exchange.parts.owners); break;
      case Form::ring: reduce_around(builder); break;
      case Form::mpi:
        builder.begin_round();
        builder.call(Collective::Operation::reduce_scatter);
        break;
    }
  }
  return builder.take(leaves_last);
}

BucketRounds spread_rounds(const BucketExchange& exchange) {
  Builder builder(exchange);
  if (builder.machine_count() > 1) {
    switch (builder.across_form()) {
      case Form::direct: spread_directly(builder); break;
      case Form::tree:
      case Form::recursive: spread_recursively(builder, exchange.parts.owners); break;
      case Form::ring: spread_around(builder); break;
      case Form::mpi:
        builder.begin_round();
        builder.call(Collective::Operation::all_gather);
        break;
    }
  }
  spread_inside(builder, exchange);
  return builder.take(false);
}

}  // namespace orthant::schedule
