#include "orthant/schedule/gather_rounds.hpp"

#include "orthant/schedule/levels.hpp"
#include "orthant/tensor/rank_group.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using tensor::Dim;
using tensor::Range;

constexpr std::int64_t item_bytes = sizeof(float);

bool wants(const tensor::Demand& demand, Dim dim, int coordinate, const Range& range) {
  if (dim != Dim::c) return demand.along(dim, coordinate) == range;
  const tensor::RangeList channels = demand.channels(coordinate);
  return channels.size() == 1 && channels.front() == range;
}

/// True if every part wants all cells along the dim.
bool is_gathered(const tensor::Redistribution& boxes, Dim dim) {
  const Range all{0, boxes.held.global[dim]};
  for (int i = 0; i < boxes.wanted.grid[dim]; ++i) {
    if (!wants(boxes.wanted, dim, i, all)) return false;
  }
  return true;
}

/// True if every part wants what it holds along the dim. Samples are read as they are cut, so that their ends tell.
bool is_kept(const tensor::Redistribution& boxes, Dim dim) {
  const int parts = boxes.held.grid[dim];
  if (parts != boxes.wanted.grid[dim]) return false;
  for (int i = 0; i < parts; i += dim == Dim::n && i == 0 ? std::max(1, parts - 1) : 1) {
    if (!wants(boxes.wanted, dim, i, tensor::block(boxes.held, dim, i))) return false;
  }
  return true;
}

/// The dims that members of a group agree in; nothing if no groups gather.
std::optional<std::vector<Dim>> kept_dims(const tensor::Redistribution& boxes) {
  const tensor::Grid& held = boxes.held.grid;
  const tensor::Grid& wanted = boxes.wanted.grid;
  if (boxes.held.first_rank != boxes.wanted.first_rank || tensor::parts(held) != tensor::parts(wanted)) return {};
  // The first part tells most tensors that are not gathered, at little cost.
  const bool may_gather = std::any_of(tensor::all_dims.begin(), tensor::all_dims.end(), [&](Dim dim) {
    return dim != Dim::n && held[dim] > 1 && wants(boxes.wanted, dim, 0, {0, boxes.held.global[dim]});
  });
  if (!may_gather || !is_kept(boxes, Dim::n)) return {};
  std::vector<Dim> kept{Dim::n};
  for (const Dim dim : {Dim::c, Dim::d, Dim::h, Dim::w}) {
    if (is_gathered(boxes, dim)) continue;
    // Only the first coordinate divides ranks alike in all grids.
    if (held != wanted || !is_kept(boxes, dim)) return {};
    kept.push_back(dim);
  }
  return kept;
}

/// What the members of a rank's group own, in their order. Blocks are found dim by dim.
std::vector<tensor::Box> owned_boxes(const tensor::Distribution& held, int rank, const std::vector<Dim>& kept) {
  const tensor::Grid own = tensor::coordinates(held.grid, rank - held.first_rank);
  std::vector<tensor::Box> boxes(1);
  for (const Dim dim : tensor::all_dims) {
    const bool is_kept = std::find(kept.begin(), kept.end(), dim) != kept.end();
    if (is_kept || held.grid[dim] == 1) {
      const tensor::Range range = tensor::block(held, dim, own[dim]);
      for (tensor::Box& box : boxes) box.set(dim, range);
      continue;
    }
    // Every box so far once for each block of this dim, which is faster than those before.
    std::vector<tensor::Box> more;
    more.reserve(boxes.size() * static_cast<std::size_t>(held.grid[dim]));
    for (const tensor::Box& before : boxes) {
      for (int part = 0; part < held.grid[dim]; ++part)
        more.emplace_back(before).set(dim, tensor::block(held, dim, part));
    }
    boxes = std::move(more);
  }
  for (tensor::Box& box : boxes) {
    if (tensor::is_empty(box)) box = {};
  }
  return boxes;
}

Message message_of(int peer, const Piece& buffer, const Range& items) {
  return {.peer = peer,
          .buffer = buffer.buffer,
          .offset_bytes = buffer.offset_bytes + items.lo * item_bytes,
          .bytes = (items.hi - items.lo) * item_bytes};
}

/// Blocks may be empty: nothing is sent for them.
void add_message(std::vector<Message>& list, int peer, const Piece& buffer, const Range& items) {
  if (items.lo < items.hi) list.push_back(message_of(peer, buffer, items));
}

/// The member that leans on `place`, or -1.
int leaning_on(const GatherGroup& group, const GatherOrder& order) {
  const int member = group.place + order.smooth();
  return group.place < order.smooth() && member < static_cast<int>(group.members.size()) ? member : -1;
}

int rank_of(const GatherGroup& group, int member) { return group.members[static_cast<std::size_t>(member)]; }

void drop_empty(std::vector<Round>& rounds) {
  std::erase_if(rounds, [](const Round& round) { return round.sends.empty() && round.receives.empty(); });
}

/// What arrives is added to its place in the buffer.
class Adding {
 public:
  Adding(const Piece& buffer, int staging) : buffer_(buffer), staging_(staging) {}

  void receive(Round& round, int peer, const Range& items) {
    if (items.lo >= items.hi) return;
    std::int64_t begin = 0;  // in this round
    for (const Message& message : round.receives) begin += message.bytes;
    const Piece src{staging_, begin};
    round.receives.push_back(message_of(peer, src, {0, items.hi - items.lo}));
    round.combinations.push_back({.dst = {buffer_.buffer, buffer_.offset_bytes + items.lo * item_bytes},
                                  .src = src,
                                  .count = items.hi - items.lo});
    bytes_ = std::max(bytes_, begin + (items.hi - items.lo) * item_bytes);
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  Piece buffer_;
  int staging_;
  std::int64_t bytes_ = 0;
};

}  // namespace

std::optional<GatherGroup> gather_group(const tensor::Redistribution& boxes, int rank, const plan::GroupForm& form) {
  const int parts = tensor::parts(boxes.held.grid);
  if (form.of(parts / boxes.held.grid.n) == plan::Form::direct || !tensor::takes_part(boxes.held, rank)) return {};
  const std::optional<std::vector<Dim>> kept = kept_dims(boxes);
  if (!kept) return {};
  const tensor::RankGroup ranks(boxes.held, rank, *kept);
  if (ranks.size() == 1 || form.of(ranks.size()) == plan::Form::direct) return {};
  return GatherGroup{
      .members = ranks.to_list(), .place = ranks.place_of(rank), .boxes = owned_boxes(boxes.held, rank, *kept)};
}

GatherOrder::GatherOrder(const GatherGroup& group) : blocks_(group.members.size()) {
  const int members = static_cast<int>(group.members.size());
  const int smooth = smooth_part(members);
  begins_.reserve(static_cast<std::size_t>(smooth) + 1);
  std::int64_t end = 0;
  for (int i = 0; i < smooth; ++i) {
    begins_.push_back(end);
    for (int member = i; member < members; member += smooth) {
      const std::int64_t begin = end;
      end += tensor::volume(group.boxes[static_cast<std::size_t>(member)]);
      blocks_[static_cast<std::size_t>(member)] = {begin, end};
    }
  }
  begins_.push_back(end);
}

std::vector<Round> gather_rounds(const GatherGroup& group, const GatherOrder& order, const Piece& buffer) {
  const Range all{0, order.items()};
  std::vector<Round> rounds;
  rounds.reserve(8);
  if (group.place >= order.smooth()) {
    const int partner = rank_of(group, group.place - order.smooth());
    add_message(rounds.emplace_back().sends, partner, buffer, order.block(group.place));
    add_message(rounds.emplace_back().receives, partner, buffer, all);
    drop_empty(rounds);
    return rounds;
  }
  const int leaning = leaning_on(group, order);
  if (leaning >= 0) add_message(rounds.emplace_back().receives, rank_of(group, leaning), buffer, order.block(leaning));
  std::vector<Split> splits = splits_of(order.smooth(), group.place);
  std::reverse(splits.begin(), splits.end());
  for (const Split& split : splits) {
    Round& round = rounds.emplace_back();
    for (int i = 0; i < split.count; ++i) {
      if (i == split.digit) continue;
      const int peer = rank_of(group, group.place + (i - split.digit) * split.size);
      add_message(round.sends, peer, buffer, order.blocks(split.first + split.digit * split.size, split.size));
      add_message(round.receives, peer, buffer, order.blocks(split.first + i * split.size, split.size));
    }
  }
  if (leaning >= 0) add_message(rounds.emplace_back().sends, rank_of(group, leaning), buffer, all);
  drop_empty(rounds);
  return rounds;
}

ScatterRounds scatter_rounds(const GatherGroup& group, const GatherOrder& order, const Piece& buffer, int staging) {
  const Range all{0, order.items()};
  ScatterRounds result;
  std::vector<Round>& rounds = result.rounds;
  rounds.reserve(8);
  if (group.place >= order.smooth()) {
    const int partner = rank_of(group, group.place - order.smooth());
    add_message(rounds.emplace_back().sends, partner, buffer, all);
    add_message(rounds.emplace_back().receives, partner, buffer, order.block(group.place));
    drop_empty(rounds);
    return result;
  }
  Adding adding(buffer, staging);
  const int leaning = leaning_on(group, order);
  if (leaning >= 0) adding.receive(rounds.emplace_back(), rank_of(group, leaning), all);
  for (const Split& split : splits_of(order.smooth(), group.place)) {
    Round& round = rounds.emplace_back();
    for (int i = 0; i < split.count; ++i) {
      if (i == split.digit) continue;
      const int peer = rank_of(group, group.place + (i - split.digit) * split.size);
      add_message(round.sends, peer, buffer, order.blocks(split.first + i * split.size, split.size));
      adding.receive(round, peer, order.blocks(split.first + split.digit * split.size, split.size));
    }
  }
  if (leaning >= 0) add_message(rounds.emplace_back().sends, rank_of(group, leaning), buffer, order.block(leaning));
  drop_empty(rounds);
  result.staging_bytes = adding.bytes();
  return result;
}

}  // namespace orthant::schedule
