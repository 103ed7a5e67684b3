#include "orthant/schedule/exchanges.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/schedule/sum_rounds.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using tensor::Box;

constexpr std::int64_t double_bytes = sizeof(double);

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

Parcels parcels_of(const Value& value, const std::vector<tensor::Move>& moves) {
  return {.tensors = {&value, 1}, .moves = moves};
}

Parcels parcels_of(const Tensor& tensor, const std::vector<tensor::Move>& moves) {
  return {.tensors = tensor.boxes, .moves = moves};
}

std::int64_t total_volume(const std::vector<tensor::Move>& moves) {
  std::int64_t sum = 0;
  for (const tensor::Move& move : moves) sum += tensor::volume(move.box);
  return sum;
}

}  // namespace

const Levels& Exchanges::levels(const tensor::RankGroup& group) {
  const auto [entry, is_new] = levels_.try_emplace(group);
  if (is_new) entry->second = levels_of(group, setting_.rank, setting_.machines, setting_.forms.two_levels);
  return entry->second;
}

Pending Exchanges::start(const std::string& name, Kind kind, const Parcels& sends, const Parcels& receives,
                         bool accumulate) {
  if (sends.moves.empty() && receives.moves.empty()) {
    ++tag_;
    return {};
  }
  const int packed = static_cast<int>(schedule_.buffers.size());
  Packing out = pack(sends, Way::out, packed);
  if (!out.copies.empty()) {
    emitter_.add_buffer(name + ".packed", out.bytes);
    emitter_.emit(emitter_.node(), "pack", model::CopyPiecesTask{.pieces = std::move(out.copies)},
                  {sends.tensors.front().buffer, packed});
  }
  Pending pending;
  const int arrived = static_cast<int>(schedule_.buffers.size());
  Packing in = pack(receives, Way::in, arrived, accumulate);
  if (!in.copies.empty()) {
    emitter_.add_buffer(name + ".arrived", in.bytes);
    pending.after.push_back(
        emitter_.make_step(emitter_.node(), accumulate ? "add_arrived" : "unpack",
                           model::CopyPiecesTask{.accumulate = accumulate, .pieces = std::move(in.copies)},
                           {arrived, receives.tensors.front().buffer}));
  }
  std::vector<Round> rounds(1);
  rounds.front().sends = std::move(out.messages);
  rounds.front().receives = std::move(in.messages);
  pending.exchange = start(name, kind, std::move(rounds));
  return pending;
}

int Exchanges::start(const std::string& name, Kind kind, std::vector<Round> rounds) {
  const int index = static_cast<int>(schedule_.exchanges.size());
  schedule_.exchanges.push_back({.name = name, .kind = kind, .tag = tag_++, .rounds = std::move(rounds)});
  buffers_.push_back(buffers_of(schedule_.exchanges.back()));
  emitter_.emit(name + ".start", Start{index}, buffers_.back());
  return index;
}

void Exchanges::finish(int exchange) {
  emitter_.emit(at(schedule_.exchanges, exchange).name + ".finish", Finish{exchange}, at(buffers_, exchange));
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

Route Exchanges::route_of_own(const tensor::Box& owned) const {
  Route route;
  if (tensor::is_empty(owned)) return route;
  route.owned = owned;
  route.wanted.push_back(owned);
  route.moves.stays.push_back({.peer = setting_.rank, .wanted = 0, .box = owned});
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
  finish(start(name, kind, parcels_of(own, moves.sends), parcels_of(result, moves.receives)));
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
  result.pending = start(name, kind, parcels_of(gradient, moves.receives), parcels_of(result.own, moves.sends), true);
  return result;
}

Pending Exchanges::fill(const std::string& name, Kind kind, const NodeValue& value, const Route& route) {
  if (route.group) return gather(name, kind, *route.group, value.own, value.stored);
  return start(name, kind, parcels_of(value.own, route.moves.sends), parcels_of(value.stored, route.moves.receives));
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
