#include "orthant/schedule/sum_rounds.hpp"

namespace orthant::schedule {
namespace {

constexpr auto float64 = model::ItemType::float64;

/// Builds rounds one after the other. The sum so far is in a slot that is chosen by the round that reads it.
class Builder {
 public:
  Builder(std::int64_t count, int slots, int result) : count_(count), buffer_(slots), result_(result) {
    rounds_.reserve(16);  // more than almost all groups need
  }

  /// `size` members, every `stride`th from `first` on, send theirs to all: each of them adds the same numbers in the
  /// order of members.
  void exchange(const Members& members, int first, int stride, int size, int place) {
    const int room = open(size, place);
    Round& round = rounds_.emplace_back();
    round.sends.reserve(static_cast<std::size_t>(size) - 1);
    round.receives.reserve(static_cast<std::size_t>(size) - 1);
    for (int i = 0; i < size; ++i) {
      if (i == place) continue;
      const int peer = members[first + i * stride];
      round.sends.push_back(message(peer, slot(room + place)));
      round.receives.push_back(message(peer, slot(room + i)));
    }
    close(room, size);
  }

  /// What `peers` have is added to what this rank has.
  void take(const std::vector<int>& peers) {
    const int room = open(1 + static_cast<int>(peers.size()), 0);
    Round& round = rounds_.emplace_back();
    for (int i = 0; i < static_cast<int>(peers.size()); ++i)
      round.receives.push_back(message(peers[static_cast<std::size_t>(i)], slot(room + 1 + i)));
    close(room, 1 + static_cast<int>(peers.size()));
  }

  /// This rank's sum goes to `peer`, who will send the result.
  void give(int peer) {
    const int room = open(1, 0);
    rounds_.push_back({.sends = {message(peer, slot(room))}});
  }

  void call_mpi(const Members& members) {
    const int room = open(1, 0);
    Round round;
    round.collective = Collective{.operation = Collective::Operation::all_reduce,
                                  .ranks = members.to_list(),
                                  .src = slot(room),
                                  .dst = {},
                                  .count = count_,
                                  .type = float64};
    rounds_.push_back(std::move(round));
    waiting_collective_ = static_cast<int>(rounds_.size()) - 1;
  }

  /// The sum so far is the result.
  void end() { settle({result_, 0}); }

  void send_result(const std::vector<int>& peers) {
    if (peers.empty()) return;
    Round round;
    for (const int peer : peers) round.sends.push_back(message(peer, {result_, 0}));
    rounds_.push_back(std::move(round));
  }

  /// That the rounds so far send.
  [[nodiscard]] int messages() const {
    std::size_t count = 0;
    for (const Round& round : rounds_) count += round.sends.size();
    return static_cast<int>(count);
  }

  void receive_result(int peer) { rounds_.push_back({.receives = {message(peer, {result_, 0})}}); }

  SumRounds take_all() { return {.slots = slots_, .own_slot = own_slot_, .rounds = std::move(rounds_)}; }

 private:
  [[nodiscard]] std::int64_t bytes() const { return count_ * static_cast<std::int64_t>(sizeof(double)); }
  [[nodiscard]] Piece slot(int index) const { return {buffer_, index * bytes()}; }
  [[nodiscard]] Message message(int peer, const Piece& piece) const {
    return {.peer = peer, .buffer = piece.buffer, .offset_bytes = piece.offset_bytes, .bytes = bytes()};
  }

  /// Room for `size` sets of doubles, the sum so far in one of them.
  int open(int size, int place) {
    const int room = slots_;
    slots_ += size;
    settle(slot(room + place));
    return room;
  }

  /// The round adds up its room; where to, the next one says.
  void close(int room, int size) {
    waiting_room_ = room;
    waiting_size_ = size;
  }

  /// Says where the sum so far goes.
  void settle(const Piece& place) {
    if (waiting_collective_ >= 0) {
      rounds_[static_cast<std::size_t>(waiting_collective_)].collective->dst = place;
    } else if (waiting_size_ > 0) {
      rounds_.back().combinations.reserve(static_cast<std::size_t>(waiting_size_));
      for (int i = 0; i < waiting_size_; ++i) {
        rounds_.back().combinations.push_back(
            {.dst = place, .src = slot(waiting_room_ + i), .count = count_, .type = float64, .accumulate = i > 0});
      }
    } else if (place.buffer == buffer_) {
      own_slot_ = static_cast<int>(place.offset_bytes / bytes());
    }
    waiting_collective_ = -1;
    waiting_size_ = 0;
  }

  std::int64_t count_;
  int buffer_, result_;
  int slots_ = 0, own_slot_ = 0;
  int waiting_room_ = 0, waiting_size_ = 0, waiting_collective_ = -1;
  std::vector<Round> rounds_;
};

std::vector<int> every(const Members& members, int first, int step) {
  std::vector<int> some;
  for (int i = first; i < members.size(); i += step) some.push_back(members[i]);
  return some;
}

/// Of a rank in one exchange, unless even rounds of two take more.
constexpr int most_messages = 13;

/// The sizes of the groups that exchange in each round. Messages of one round travel together, so rounds of four are
/// shorter than twice two; but the number of messages stays small in groups of any size.
std::vector<int> round_sizes(int smooth, int most) {
  std::vector<int> sizes = factors_of(smooth);
  int messages = 0;
  for (const int size : sizes) messages += size - 1;
  for (std::size_t i = 0; i + 1 < sizes.size() && messages < most; ++i) {
    if (sizes[i] != 2 || sizes[i + 1] != 2) continue;
    sizes[i] = 4;
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ++messages;
  }
  return sizes;
}

/// Doubling over the factors of `smooth` members: after each round the members of a larger block have the same sum.
void double_up(Builder& builder, const Members& members, int place, int smooth) {
  int block = 1;
  for (const int factor : round_sizes(smooth, most_messages - builder.messages())) {
    const int digit = place / block % factor;
    builder.exchange(members, place - digit * block, block, factor, digit);
    block *= factor;
  }
}

}  // namespace

SumRounds sum_rounds(const Levels& levels, const plan::GroupForm& form, std::int64_t count, int slots, int result) {
  Builder builder(count, slots, result);
  // Inside a machine members beyond the active ones, and on both levels those beyond the adding part, hand over what
  // they have.
  // What decides must be the same on all machines, which may have more members than the active ones.
  const bool is_direct = form.of(levels.active) == plan::Form::direct;
  const int inside_parts = adding_part(levels.active, form);
  const bool takes_part = levels.inside_place < inside_parts;
  if (!takes_part) {
    const int partner = levels.inside[levels.inside_place % inside_parts];
    builder.give(partner);
    builder.receive_result(partner);
    return builder.take_all();
  }
  const std::vector<int> leaning = every(levels.inside, levels.inside_place + inside_parts, inside_parts);
  if (!leaning.empty()) builder.take(leaning);
  if (is_direct && inside_parts > 1) {
    builder.exchange(levels.inside, 0, 1, inside_parts, levels.inside_place);
  } else {
    double_up(builder, levels.inside, levels.inside_place, inside_parts);
  }

  const int machine_count = levels.across.size();
  const plan::Form across_form = form.of(machine_count);
  if (machine_count > 1 && across_form == plan::Form::direct) {
    builder.exchange(levels.across, 0, 1, machine_count, levels.across_place);
    builder.end();
  } else if (machine_count > 1 && across_form == plan::Form::mpi) {
    builder.call_mpi(levels.across);
    builder.end();
  } else {
    const int adding = adding_part(machine_count, form);
    if (levels.across_place >= adding) {
      const int partner = levels.across[levels.across_place % adding];
      builder.give(partner);
      builder.receive_result(partner);
    } else {
      const std::vector<int> far = every(levels.across, levels.across_place + adding, adding);
      if (!far.empty()) builder.take(far);
      double_up(builder, levels.across, levels.across_place, adding);
      builder.end();
      builder.send_result(far);
    }
  }
  builder.send_result(leaning);
  return builder.take_all();
}

}  // namespace orthant::schedule
