#include "orthant/base/checked.hpp"
#include "orthant/schedule/exchanges.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

Value part_or_nothing(const Value& value, const tensor::Box& box) {
  return tensor::is_empty(box) ? Value{} : part_of(value, box);
}

tensor::Layout layout_of(const Value& whole, const tensor::Box& box) {
  return tensor::box_of(whole.layout, box, whole.box.lo);
}

/// A block as it lies in a buffer that has the blocks of a group one after the other.
tensor::Layout dense_block(const GatherGroup& group, const GatherOrder& order, int member) {
  tensor::Layout layout = tensor::channels_last(tensor::extents_of(at(group.boxes, member)));
  layout.offset = order.block(member).lo;
  return layout;
}

/// True if the blocks of a group lie in `all` as they do in a buffer of their own.
bool lies_in_order(const Value& all, const GatherGroup& group, const GatherOrder& order) {
  for (int i = 0; i < static_cast<int>(group.boxes.size()); ++i) {
    if (tensor::is_empty(at(group.boxes, i))) continue;
    const tensor::Layout layout = layout_of(all, at(group.boxes, i));
    if (layout.offset != all.layout.offset + order.block(i).lo || !tensor::is_dense(layout)) return false;
  }
  return true;
}

Piece begin_of(const Value& value) { return {value.buffer, value.layout.offset * float_bytes}; }

}  // namespace

Pending Exchanges::gather(const std::string& name, Kind kind, const GatherGroup& group, const Value& own,
                          const Value& all) {
  const GatherOrder order(group);
  if (lies_in_order(all, group, order))
    return {.exchange = start(name, kind, gather_rounds(group, order, begin_of(all))), .after = {}};
  const int gathered = emitter_.add_buffer(name + ".gathered", base::checked_mul(order.items(), float_bytes));
  Pending pending;
  model::CopyPiecesTask unpacking;
  unpacking.pieces.reserve(group.boxes.size());
  for (int i = 0; i < static_cast<int>(group.boxes.size()); ++i) {
    const tensor::Box& box = at(group.boxes, i);
    if (tensor::is_empty(box)) continue;
    const tensor::Layout block = dense_block(group, order, i);
    if (i == group.place) {
      emitter_.emit(emitter_.node(), "pack", model::CopyPiecesTask{.pieces = {{.src = own.layout, .dst = block}}},
                    {own.buffer, gathered});
    } else {
      unpacking.pieces.push_back({.src = block, .dst = layout_of(all, box)});
    }
  }
  if (!unpacking.pieces.empty())
    pending.after.push_back(
        emitter_.make_step(emitter_.node(), "unpack", std::move(unpacking), {gathered, all.buffer}));
  pending.exchange = start(name, kind, gather_rounds(group, order, {gathered, 0}));
  return pending;
}

Returning Exchanges::scatter(const std::string& name, Kind kind, const GatherGroup& group, const Value& partial) {
  const GatherOrder order(group);
  const tensor::Box& owned = at(group.boxes, group.place);
  Returning result;
  const auto emit_rounds = [&](const Piece& buffer) {
    const int staging = emitter_.add_buffer(name + ".arrived", 0);
    ScatterRounds made = scatter_rounds(group, order, buffer, staging);
    emitter_.buffer(staging).bytes = made.staging_bytes;
    result.pending.exchange = start(name, kind, std::move(made.rounds));
  };
  if (partial.owned) result.own = part_or_nothing(partial, owned);
  if (partial.owned && lies_in_order(partial, group, order)) {
    emit_rounds(begin_of(partial));
    return result;
  }
  if (!partial.owned) result.own = emitter_.add_tensor(name + ".own", owned);
  const int packed = emitter_.add_buffer(name + ".packed", base::checked_mul(order.items(), float_bytes));
  model::CopyPiecesTask packing;
  packing.pieces.reserve(group.boxes.size());
  for (int i = 0; i < static_cast<int>(group.boxes.size()); ++i) {
    const tensor::Box& box = at(group.boxes, i);
    if (tensor::is_empty(box)) continue;
    packing.pieces.push_back({.src = layout_of(partial, box), .dst = dense_block(group, order, i)});
  }
  emitter_.emit(emitter_.node(), "pack", std::move(packing), {partial.buffer, packed});
  emit_rounds({packed, 0});
  if (!result.own.empty())
    result.pending.after.push_back(emitter_.make_step(
        emitter_.node(), "unpack",
        model::CopyPiecesTask{.pieces = {{.src = dense_block(group, order, group.place), .dst = result.own.layout}}},
        {packed, result.own.buffer}));
  return result;
}

}  // namespace orthant::schedule
