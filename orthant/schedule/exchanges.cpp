#include "orthant/schedule/exchanges.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/schedule/sum_rounds.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using tensor::Box;

constexpr std::int64_t double_bytes = sizeof(double);

bool is_contiguous(const Value& value) { return tensor::is_dense(value.layout); }

Message message_of(int peer, const Value& value) {
  return {.peer = peer,
          .buffer = value.buffer,
          .offset_bytes = value.layout.offset * float_bytes,
          .bytes = base::checked_mul(tensor::volume(value.box), float_bytes)};
}

std::vector<int> buffers_of(const Exchange& exchange) {
  std::vector<int> buffers;
  const auto add = [&](int buffer) {
    if (!buffers.empty() && buffers.back() == buffer) return;
    if (std::find(buffers.begin(), buffers.end(), buffer) == buffers.end()) buffers.push_back(buffer);
  };
  for (const Round& round : exchange.rounds) {
    for (const Message& message : round.sends) add(message.buffer);
    for (const Message& message : round.receives) add(message.buffer);
    for (const Combination& one : round.combinations) add(one.dst.buffer);
    if (round.collective) {
      add(round.collective->src.buffer);
      add(round.collective->dst.buffer);
    }
  }
  return buffers;
}

std::size_t count_if_not_contiguous(const PeerValues& values) {
  return static_cast<std::size_t>(
      std::count_if(values.begin(), values.end(), [](const auto& one) { return !is_contiguous(one.second); }));
}

/// The parts of a value that go to others, or come from them.
PeerValues parts_of(const Value& value, const std::vector<tensor::Move>& moves) {
  PeerValues parts;
  parts.reserve(moves.size());
  for (const tensor::Move& move : moves) parts.emplace_back(move.peer, part_of(value, move.box));
  return parts;
}

/// The same of a tensor of several boxes.
PeerValues parts_of(const Tensor& tensor, const std::vector<tensor::Move>& moves) {
  PeerValues parts;
  parts.reserve(moves.size());
  for (const tensor::Move& move : moves)
    parts.emplace_back(move.peer, part_of(at(tensor.boxes, move.wanted), move.box));
  return parts;
}

std::int64_t total_volume(const std::vector<tensor::Move>& moves) {
  std::int64_t sum = 0;
  for (const tensor::Move& move : moves) sum += tensor::volume(move.box);
  return sum;
}

/// Dense copies of boxes, one after the other in a buffer.
class Staging {
 public:
  Value next(const Box& box) {
    Value value{.buffer = -1, .box = box, .layout = tensor::channels_last(tensor::extents_of(box))};
    value.layout.offset = items_;
    items_ = base::checked_add(items_, tensor::volume(box));
    return value;
  }
  [[nodiscard]] std::int64_t bytes() const { return base::checked_mul(items_, float_bytes); }

 private:
  std::int64_t items_ = 0;
};

}  // namespace

const Levels& Exchanges::levels(const tensor::RankGroup& group) {
  const auto [entry, is_new] = levels_.try_emplace(group);
  if (is_new) entry->second = levels_of(group, setting_.rank, setting_.machines, setting_.forms.two_levels);
  return entry->second;
}

Pending Exchanges::start(const std::string& name, Kind kind, const PeerValues& sends, const PeerValues& receives,
                         bool accumulate) {
  if (sends.empty() && receives.empty()) {
    ++tag_;
    return {};
  }
  Round round;
  Pending pending;

  Staging packed;
  const int packed_buffer = static_cast<int>(schedule_.buffers.size());
  model::CopyPiecesTask packing;
  packing.pieces.reserve(count_if_not_contiguous(sends));
  round.sends.reserve(sends.size());
  for (const auto& [peer, value] : sends) {
    Value from = value;
    if (!is_contiguous(value)) {
      from = packed.next(value.box);
      from.buffer = packed_buffer;
      packing.pieces.push_back({.src = value.layout, .dst = from.layout});
    }
    round.sends.push_back(message_of(peer, from));
  }
  if (!packing.pieces.empty()) {
    emitter_.add_buffer(name + ".packed", packed.bytes());
    emitter_.emit(emitter_.node(), "pack", std::move(packing), {sends.front().second.buffer, packed_buffer});
  }

  Staging arrived;
  const int arrived_buffer = static_cast<int>(schedule_.buffers.size());
  model::CopyPiecesTask unpacking{.accumulate = accumulate};
  unpacking.pieces.reserve(accumulate ? receives.size() : count_if_not_contiguous(receives));
  round.receives.reserve(receives.size());
  for (const auto& [peer, value] : receives) {
    Value place = value;
    if (accumulate || !is_contiguous(value)) {
      place = arrived.next(value.box);
      place.buffer = arrived_buffer;
      unpacking.pieces.push_back({.src = place.layout, .dst = value.layout});
    }
    round.receives.push_back(message_of(peer, place));
  }
  if (!unpacking.pieces.empty()) {
    emitter_.add_buffer(name + ".arrived", arrived.bytes());
    pending.after.push_back(emitter_.make_step(emitter_.node(), accumulate ? "add_arrived" : "unpack",
                                               std::move(unpacking), {arrived_buffer, receives.front().second.buffer}));
  }

  std::vector<Round> rounds;
  rounds.push_back(std::move(round));
  pending.exchange = start(name, kind, std::move(rounds));
  return pending;
}

int Exchanges::start(const std::string& name, Kind kind, std::vector<Round> rounds) {
  Exchange exchange{.name = name, .kind = kind, .tag = tag_++, .rounds = std::move(rounds)};
  const int index = static_cast<int>(schedule_.exchanges.size());
  buffers_.push_back(buffers_of(exchange));
  emitter_.emit({.name = name + ".start",
                 .node = emitter_.node(),
                 .phase = emitter_.phase(),
                 .work = Start{index},
                 .arguments = buffers_.back()});
  schedule_.exchanges.push_back(std::move(exchange));
  return index;
}

void Exchanges::finish(int exchange) {
  const Exchange& ended = at(schedule_.exchanges, exchange);
  emitter_.emit({.name = ended.name + ".finish",
                 .node = emitter_.node(),
                 .phase = emitter_.phase(),
                 .work = Finish{exchange},
                 .arguments = at(buffers_, exchange)});
}

void Exchanges::settle(Pending pending) {
  if (pending.exchange < 0) return;
  finish(pending.exchange);
  emitter_.emit(std::move(pending.after));
}

void Exchanges::finish(Pending pending) {
  if (pending.exchange < 0) return;
  if (!receives_something(at(schedule_.exchanges, pending.exchange))) {
    unsettled_sends_.push_back({.micro_batch = micro_batch_, .phase = emitter_.phase(), .pending = std::move(pending)});
    return;
  }
  settle(std::move(pending));
  if (!setting_.has_stages) settle_sends();
}

void Exchanges::settle_sends() {
  for (UnsettledSend& send : unsettled_sends_) settle(std::move(send.pending));
  unsettled_sends_.clear();
}

void Exchanges::settle_forward_sends() {
  const auto kept = std::stable_partition(
      unsettled_sends_.begin(), unsettled_sends_.end(),
      [&](const UnsettledSend& send) { return send.micro_batch != micro_batch_ || send.phase != Phase::forward; });
  for (auto send = kept; send != unsettled_sends_.end(); ++send) settle(std::move(send->pending));
  unsettled_sends_.erase(kept, unsettled_sends_.end());
}

Route Exchanges::route(const tensor::Redistribution& boxes) const {
  Route route{.owned = tensor::owned_box(boxes.held, setting_.rank),
              .wanted = tensor::wanted_boxes(boxes.wanted, setting_.rank),
              .group = gather_group(boxes, setting_.rank, setting_.forms.gathers)};
  if (!route.group) route.moves = tensor::moves_of(boxes, setting_.rank);
  return route;
}

Tensor Exchanges::collect(const std::string& name, Kind kind, const Value& own, const Route& route) {
  const auto& [owned, wanted, group, moves] = route;
  Tensor result;
  if (wanted.size() == 1 && !own.empty() && tensor::contains(own.box, wanted.front())) {
    result = as_tensor(part_of(own, wanted.front()));
  } else {
    result = emitter_.add_tensor(name, wanted);
    if (group && !own.empty()) emitter_.copy(emitter_.node(), "keep", own, part_of(result.boxes.front(), own.box));
    for (const tensor::Move& move : moves.stays)
      emitter_.copy(emitter_.node(), "keep", part_of(own, move.box), part_of(at(result.boxes, move.wanted), move.box));
  }
  if (group) {
    finish(gather(name, kind, *group, own, result.boxes.front()));
    return result;
  }
  finish(start(name, kind, parts_of(own, moves.sends), parts_of(result, moves.receives)));
  return result;
}

Returning Exchanges::give_back(const std::string& name, Kind kind, const Tensor& gradient, const Route& route) {
  const auto& [owned, wanted, group, moves] = route;
  if (group) {
    Value partial = gradient.boxes.front();
    partial.owned = gradient.all.owned;
    return scatter(name, kind, *group, partial);
  }
  Returning result;
  if (!tensor::is_empty(owned)) {
    const bool inside = gradient.boxes.size() == 1 && tensor::contains(gradient.boxes.front().box, owned);
    if (inside && (gradient.all.owned || moves.sends.empty())) {
      result.own = part_of(gradient.boxes.front(), owned);
    } else {
      result.own = emitter_.add_tensor(name + ".own", owned);
      if (total_volume(moves.stays) < tensor::volume(owned))
        emitter_.emit(emitter_.node(), "zero", model::FillTask{.dst = result.own.layout}, {result.own.buffer});
      for (const tensor::Move& move : moves.stays) {
        emitter_.copy(emitter_.node(), "keep", part_of(at(gradient.boxes, move.wanted), move.box),
                      part_of(result.own, move.box));
      }
    }
  }
  result.pending = start(name, kind, parts_of(gradient, moves.receives), parts_of(result.own, moves.sends), true);
  return result;
}

Pending Exchanges::fill(const std::string& name, Kind kind, const NodeValue& value, const Route& route) {
  if (route.group) return gather(name, kind, *route.group, value.own, value.stored);
  return start(name, kind, parts_of(value.own, route.moves.sends), parts_of(value.stored, route.moves.receives));
}

Sums Exchanges::prepare_sums(const std::string& name, std::int64_t count, const tensor::RankGroup& group) {
  Sums sums;
  if (!group.contains(setting_.rank)) return sums;
  const std::int64_t bytes = base::checked_mul(count, double_bytes);
  if (group.size() == 1) {
    sums.mine = sums.result = emitter_.add_buffer(name, bytes);
    return sums;
  }
  const int slots = emitter_.add_buffer(name, 0);
  sums.result = emitter_.add_buffer(name + ".result", bytes);
  SumRounds made = sum_rounds(levels(group), setting_.forms.sums, count, slots, sums.result);
  emitter_.buffer(slots).bytes = base::checked_mul(bytes, made.slots);
  sums.mine = emitter_.add_piece(name + ".own", slots, made.own_slot * bytes, bytes);
  sums.rounds = std::move(made.rounds);
  return sums;
}

int Exchanges::sum_up(const std::string& name, Kind kind, Sums sums) {
  if (sums.rounds.empty()) {
    ++tag_;
    return sums.result;
  }
  const int started = start(name, kind, std::move(sums.rounds));
  emitter_.emit_deferred();
  finish(started);
  return sums.result;
}

}  // namespace orthant::schedule
