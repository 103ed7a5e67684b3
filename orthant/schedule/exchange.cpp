#include "orthant/base/checked.hpp"
#include "orthant/schedule/lowering.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using tensor::Box;

constexpr std::int64_t float_bytes = sizeof(float);
constexpr std::int64_t double_bytes = sizeof(double);

std::int64_t bytes_of(const Box& box) { return base::checked_mul(tensor::volume(box), float_bytes); }

bool is_contiguous(const Value& value) { return tensor::is_dense(value.layout); }

Message message_of(int peer, const Value& value) {
  return {.peer = peer,
          .buffer = value.buffer,
          .offset_bytes = value.layout.offset * float_bytes,
          .bytes = bytes_of(value.box)};
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

Value part_of(const Value& value, const Box& box) {
  Value part = value;
  part.box = box;
  part.layout = tensor::box_of(value.layout, tensor::relative(box, value.box.lo));
  return part;
}

/// Packs what is not contiguous and emits the start. What arrives where memory is not contiguous, or is to be added to
/// what is there (`accumulate`), goes through a buffer of its own: finish() takes it from there. For `in_place` see
/// Exchange.
Pending Lowering::start(const std::string& name, Kind kind, const Placed& sends, const Placed& receives,
                        bool accumulate, bool in_place) {
  const int tag = tag_++;
  if (sends.empty() && receives.empty()) return {};
  Exchange exchange{.name = name, .kind = kind, .tag = tag, .sends = {}, .receives = {}, .in_place = in_place};
  Pending pending;

  Staging packed;
  const int packed_buffer = static_cast<int>(schedule_.buffers.size());
  std::vector<Step> packing;
  for (const auto& [peer, value] : sends) {
    Value from = value;
    if (!is_contiguous(value)) {
      from = packed.next(value.box);
      from.buffer = packed_buffer;
      packing.push_back(make_step(current_node_, "pack", model::CopyTask{.src = value.layout, .dst = from.layout},
                                  {value.buffer, from.buffer}));
    }
    exchange.sends.push_back(message_of(peer, from));
  }
  if (!packing.empty()) add_buffer(name + ".packed", packed.bytes());
  for (Step& step : packing) schedule_.steps.push_back(std::move(step));

  Staging arrived;
  const int arrived_buffer = static_cast<int>(schedule_.buffers.size());
  for (const auto& [peer, value] : receives) {
    Value into = value;
    if (accumulate || !is_contiguous(value)) {
      into = arrived.next(value.box);
      into.buffer = arrived_buffer;
      const model::CopyTask task{.accumulate = accumulate, .src = into.layout, .dst = value.layout};
      pending.after.push_back(
          make_step(current_node_, accumulate ? "add_arrived" : "unpack", task, {into.buffer, value.buffer}));
      pending.arrived.push_back(into);
    }
    exchange.receives.push_back(message_of(peer, into));
  }
  if (!pending.after.empty()) add_buffer(name + ".arrived", arrived.bytes());

  pending.exchange = emit_start(std::move(exchange));
  return pending;
}

int Lowering::emit_start(Exchange exchange) {
  const int index = static_cast<int>(schedule_.exchanges.size());
  schedule_.steps.push_back({.name = exchange.name + ".start",
                             .node = current_node_,
                             .phase = phase_,
                             .work = Start{index},
                             .arguments = buffers_of(exchange)});
  schedule_.exchanges.push_back(std::move(exchange));
  return index;
}

void Lowering::emit_finish(int index) {
  const Exchange& exchange = at(schedule_.exchanges, index);
  schedule_.steps.push_back({.name = exchange.name + ".finish",
                             .node = current_node_,
                             .phase = phase_,
                             .work = Finish{index},
                             .arguments = buffers_of(exchange)});
}

/// Waits for an exchange, and does what remains.
void Lowering::settle(Pending pending) {
  if (pending.exchange < 0) return;
  emit_finish(pending.exchange);
  for (Step& step : pending.after) schedule_.steps.push_back(std::move(step));
}

/// The same, but who only sends does not wait until that is taken: it does after the next messages that it gets, when
/// those who sent them have most likely taken theirs. Another stage takes what it is sent when it gets there, which may
/// be much later.
void Lowering::finish(Pending pending) {
  if (pending.exchange < 0) return;
  if (at(schedule_.exchanges, pending.exchange).receives.empty()) {
    unsettled_sends_.push_back({.micro = micro_, .phase = phase_, .pending = std::move(pending)});
    return;
  }
  settle(std::move(pending));
  if (!has_stages_) settle_sends();
}

void Lowering::settle_sends() {
  for (UnsettledSend& send : unsettled_sends_) settle(std::move(send.pending));
  unsettled_sends_.clear();
}

/// Of what the micro-batch sent forward. In a pipeline its backward comes after the forward passes of all stages, which
/// have taken everything.
void Lowering::settle_forward_sends() {
  const auto kept = std::stable_partition(
      unsettled_sends_.begin(), unsettled_sends_.end(),
      [&](const UnsettledSend& send) { return send.micro != micro_ || send.phase != Phase::forward; });
  for (auto send = kept; send != unsettled_sends_.end(); ++send) settle(std::move(send->pending));
  unsettled_sends_.erase(kept, unsettled_sends_.end());
}

/// Room for the doubles of every rank of a group, in rank order; the piece returned is this rank's.
int Lowering::add_sums(const std::string& name, std::int64_t count, const std::vector<int>& ranks) {
  const std::int64_t bytes = base::checked_mul(count, double_bytes);
  const int parts = add_buffer(name, base::checked_mul(bytes, static_cast<std::int64_t>(ranks.size())));
  const auto place = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
  return ranks.size() == 1 ? parts : add_piece(name + ".own", parts, place * bytes, bytes);
}

/// Every rank of the group gets the sum of the doubles of all, in the same order of additions. `mine` comes from
/// add_sums.
int Lowering::add_up(const std::string& name, Kind kind, int mine, std::int64_t count, const std::vector<int>& ranks) {
  const int tag = tag_++;
  if (ranks.size() <= 1) return mine;
  const int parts = at(schedule_.buffers, mine).inside;
  const std::int64_t bytes = at(schedule_.buffers, mine).bytes;
  Exchange exchange{.name = name, .kind = kind, .tag = tag, .sends = {}, .receives = {}};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == rank_) continue;
    exchange.sends.push_back(
        {.peer = ranks[i], .buffer = parts, .offset_bytes = at(schedule_.buffers, mine).offset_bytes, .bytes = bytes});
    exchange.receives.push_back(
        {.peer = ranks[i], .buffer = parts, .offset_bytes = static_cast<std::int64_t>(i) * bytes, .bytes = bytes});
  }
  const int started = emit_start(std::move(exchange));
  emit_put_off();
  emit_finish(started);
  const int sum = add_buffer(name + ".sum", bytes);
  emit(current_node_, "add_up", model::SumTask{.parts = static_cast<int>(ranks.size()), .count = count}, {parts, sum});
  return sum;
}

}  // namespace orthant::schedule
