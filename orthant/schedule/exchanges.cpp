#include "orthant/schedule/exchanges.hpp"

#include "orthant/base/checked.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using tensor::Box;

constexpr std::int64_t double_bytes = sizeof(double);

bool is_contiguous(const Value& value) { return tensor::is_dense(value.layout); }

Message message_of(int peer, const Value& value, Transport transport = Transport::moved) {
  return {.peer = peer,
          .buffer = value.buffer,
          .offset_bytes = value.layout.offset * float_bytes,
          .bytes = base::checked_mul(tensor::volume(value.box), float_bytes),
          .transport = transport};
}

std::vector<int> buffers_of(const Exchange& exchange) {
  std::vector<int> buffers;
  for (const auto* list : {&exchange.sends, &exchange.receives}) {
    for (const Message& message : *list) {
      if (std::find(buffers.begin(), buffers.end(), message.buffer) == buffers.end()) buffers.push_back(message.buffer);
    }
  }
  return buffers;
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

bool Exchanges::may_stay(int peer, std::int64_t bytes) const {
  return bytes >= setting_.least_bytes_in_place && bytes > 0 && shares_memory({peer});
}

bool Exchanges::shares_memory(const std::vector<int>& ranks) const {
  const std::vector<int>& sharing = setting_.sharing_ranks;
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return std::find(sharing.begin(), sharing.end(), rank) != sharing.end(); });
}

Pending Exchanges::start(const std::string& name, Kind kind, const PeerValues& sends, const PeerValues& receives,
                         const Options& options) {
  const int tag = tag_++;
  if (sends.empty() && receives.empty()) return {};
  Exchange exchange{.name = name, .kind = kind, .tag = tag, .sends = {}, .receives = {}};
  Pending pending;

  Staging packed;
  const int packed_buffer = static_cast<int>(schedule_.buffers.size());
  std::vector<Step> packing;
  for (const auto& [peer, value] : sends) {
    Value from = value;
    if (!is_contiguous(value)) {
      from = packed.next(value.box);
      from.buffer = packed_buffer;
      packing.push_back(emitter_.make_step(emitter_.node(), "pack",
                                           model::CopyTask{.src = value.layout, .dst = from.layout},
                                           {value.buffer, from.buffer}));
    }
    exchange.sends.push_back(message_of(peer, from, transport(peer, value, options)));
  }
  if (!packing.empty()) emitter_.add_buffer(name + ".packed", packed.bytes());
  emitter_.emit(std::move(packing));

  const std::vector<Value> places = add_places(name, receives, options);
  for (std::size_t i = 0; i < receives.size(); ++i) {
    const auto& [peer, value] = receives[i];
    exchange.receives.push_back(message_of(peer, places[i], transport(peer, value, options)));
    if (places[i].buffer == value.buffer) continue;
    const model::CopyTask task{.accumulate = options.accumulate, .src = places[i].layout, .dst = value.layout};
    pending.after.push_back(emitter_.make_step(emitter_.node(), options.accumulate ? "add_arrived" : "unpack", task,
                                               {places[i].buffer, value.buffer}));
    pending.arrived.push_back(places[i]);
  }

  pending.exchange = start(std::move(exchange));
  return pending;
}

Transport Exchanges::transport(int peer, const Value& value, const Options& options) const {
  const bool moves = options.transport == Transport::in_place && !may_stay(peer, message_of(peer, value).bytes);
  return moves ? Transport::moved : options.transport;
}

/// Where each message is received: where it is wanted, or, if it cannot be received there, in a buffer for all such
/// messages, or in the memory of its sender.
std::vector<Value> Exchanges::add_places(const std::string& name, const PeerValues& receives, const Options& options) {
  std::vector<Value> places;
  Staging arrived;
  for (const auto& [peer, value] : receives) {
    if (transport(peer, value, options) == Transport::in_place) {
      Staging kept;
      places.push_back(kept.next(value.box));
      places.back().buffer = emitter_.add_buffer(name + ".at_rank_" + std::to_string(peer), kept.bytes());
      emitter_.buffer(places.back().buffer).keeper = peer;
    } else {
      places.push_back(options.accumulate || !is_contiguous(value) ? arrived.next(value.box) : value);
    }
  }
  if (arrived.bytes() == 0) return places;
  const int buffer = emitter_.add_buffer(name + ".arrived", arrived.bytes());
  for (Value& place : places) {
    if (place.buffer < 0) place.buffer = buffer;
  }
  return places;
}

int Exchanges::start(Exchange exchange) {
  const int index = static_cast<int>(schedule_.exchanges.size());
  emitter_.emit({.name = exchange.name + ".start",
                 .node = emitter_.node(),
                 .phase = emitter_.phase(),
                 .work = Start{index},
                 .arguments = buffers_of(exchange)});
  schedule_.exchanges.push_back(std::move(exchange));
  return index;
}

void Exchanges::finish(int exchange) {
  const Exchange& ended = at(schedule_.exchanges, exchange);
  emitter_.emit({.name = ended.name + ".finish",
                 .node = emitter_.node(),
                 .phase = emitter_.phase(),
                 .work = Finish{exchange},
                 .arguments = buffers_of(ended)});
}

void Exchanges::settle(Pending pending) {
  if (pending.exchange < 0) return;
  finish(pending.exchange);
  emitter_.emit(std::move(pending.after));
}

void Exchanges::finish(Pending pending) {
  if (pending.exchange < 0) return;
  if (at(schedule_.exchanges, pending.exchange).receives.empty()) {
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

Tensor Exchanges::collect(const std::string& name, Kind kind, const Value& own, const tensor::Redistribution& boxes) {
  const tensor::Moves moves = tensor::moves_of(boxes, setting_.rank);
  const std::vector<Box> wanted = boxes.wanted(setting_.rank);
  Tensor result;
  if (wanted.size() == 1 && !own.empty() && tensor::contains(own.box, wanted.front())) {
    result = as_tensor(part_of(own, wanted.front()));
  } else {
    result = emitter_.add_tensor(name, wanted);
    for (const tensor::Move& move : moves.stays)
      emitter_.copy(emitter_.node(), "keep", part_of(own, move.box), part_of(at(result.boxes, move.wanted), move.box));
  }
  PeerValues sends;
  PeerValues receives;
  for (const tensor::Move& move : moves.sends) sends.emplace_back(move.peer, part_of(own, move.box));
  for (const tensor::Move& move : moves.receives)
    receives.emplace_back(move.peer, part_of(at(result.boxes, move.wanted), move.box));
  finish(start(name, kind, sends, receives, {}));
  return result;
}

Returning Exchanges::give_back(const std::string& name, Kind kind, const Tensor& gradient,
                               const tensor::Redistribution& boxes) {
  const tensor::Moves moves = tensor::moves_of(boxes, setting_.rank);
  const Box owned = boxes.held(setting_.rank);
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
  PeerValues sends;
  PeerValues receives;
  for (const tensor::Move& move : moves.receives)
    sends.emplace_back(move.peer, part_of(at(gradient.boxes, move.wanted), move.box));
  for (const tensor::Move& move : moves.sends) receives.emplace_back(move.peer, part_of(result.own, move.box));
  result.pending = start(name, kind, sends, receives, {.accumulate = true});
  return result;
}

Pending Exchanges::fill(const std::string& name, Kind kind, const NodeValue& value,
                        const tensor::Redistribution& boxes) {
  const tensor::Moves moves = tensor::moves_of(boxes, setting_.rank);
  PeerValues sends;
  PeerValues receives;
  for (const tensor::Move& move : moves.sends) sends.emplace_back(move.peer, part_of(value.own, move.box));
  for (const tensor::Move& move : moves.receives) receives.emplace_back(move.peer, part_of(value.stored, move.box));
  return start(name, kind, sends, receives, {});
}

int Exchanges::add_sums(const std::string& name, std::int64_t count, const std::vector<int>& ranks) {
  const std::int64_t bytes = base::checked_mul(count, double_bytes);
  const int all = emitter_.add_buffer(name, base::checked_mul(bytes, static_cast<std::int64_t>(ranks.size())));
  const auto place = std::find(ranks.begin(), ranks.end(), setting_.rank) - ranks.begin();
  return ranks.size() == 1 ? all : emitter_.add_piece(name + ".own", all, place * bytes, bytes);
}

int Exchanges::sum_up(const std::string& name, Kind kind, int mine, std::int64_t count, const std::vector<int>& ranks) {
  const int tag = tag_++;
  if (ranks.size() <= 1) return mine;
  const Buffer own = emitter_.buffer(mine);
  Exchange exchange{.name = name, .kind = kind, .tag = tag, .sends = {}, .receives = {}};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == setting_.rank) continue;
    exchange.sends.push_back(
        {.peer = ranks[i], .buffer = own.inside, .offset_bytes = own.offset_bytes, .bytes = own.bytes});
    exchange.receives.push_back({.peer = ranks[i],
                                 .buffer = own.inside,
                                 .offset_bytes = static_cast<std::int64_t>(i) * own.bytes,
                                 .bytes = own.bytes});
  }
  const int started = start(std::move(exchange));
  emitter_.emit_deferred();
  finish(started);
  const int sum = emitter_.add_buffer(name + ".sum", own.bytes);
  emitter_.emit(emitter_.node(), "add_up", model::SumTask{.parts = static_cast<int>(ranks.size()), .count = count},
                {own.inside, sum});
  return sum;
}

}  // namespace orthant::schedule
