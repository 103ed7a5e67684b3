#include "orthant/schedule/parcels.hpp"

#include "orthant/base/checked.hpp"

namespace orthant::schedule {

Packing pack(const Parcels& parcels, Way way, int buffer, bool copies_all) {
  Packing packing;
  packing.messages.reserve(parcels.moves.size());
  if (copies_all) packing.copies.reserve(parcels.moves.size());
  std::int64_t items = 0;
  for (const tensor::Move& move : parcels.moves) {
    const Value& whole = parcels.tensor_of(move);
    const tensor::Layout part = tensor::box_of(whole.layout, tensor::relative(move.box, whole.box.lo));
    const std::int64_t count = tensor::volume(part.extents);
    Message& message = packing.messages.emplace_back(
        Message{.peer = move.peer, .buffer = whole.buffer, .bytes = base::checked_mul(count, float_bytes)});
    if (!copies_all && tensor::is_dense(part)) {
      message.offset_bytes = part.offset * float_bytes;
      continue;
    }
    message.buffer = buffer;
    message.offset_bytes = items * float_bytes;
    model::CopyPiecesTask::Piece& copy = packing.copies.emplace_back();
    (way == Way::out ? copy.src : copy.dst) = part;
    tensor::Layout& dense = way == Way::out ? copy.dst : copy.src;
    dense = tensor::channels_last(part.extents);
    dense.offset = items;
    items = base::checked_add(items, count);
  }
  packing.bytes = base::checked_mul(items, float_bytes);
  return packing;
}

}  // namespace orthant::schedule
