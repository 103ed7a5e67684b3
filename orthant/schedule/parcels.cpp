#include "orthant/schedule/parcels.hpp"

#include "orthant/base/checked.hpp"

namespace orthant::schedule {

Packing pack(const Parcels& parcels, Way way, int buffer, bool copies_all) {
  Packing packing;
  packing.messages.reserve(parcels.moves.size());
  std::int64_t items = 0;
  for (const tensor::Move& move : parcels.moves) {
    const Value& whole = parcels.tensor_of(move);
    const tensor::Layout part = tensor::box_of(whole.layout, move.box, whole.box.lo);
    const auto& [n, c, d, h, w] = part.extents;
    const std::int64_t count = n * c * d * h * w;  // no more than the whole has
    const bool stays = !copies_all && tensor::is_dense(part);
    packing.messages.push_back({.peer = move.peer,
                                .buffer = stays ? whole.buffer : buffer,
                                .offset_bytes = (stays ? part.offset : items) * float_bytes,
                                .bytes = count * float_bytes});
    if (stays) continue;
    if (packing.copies.empty()) packing.copies.reserve(parcels.moves.size());
    const tensor::Layout dense{
        .extents = part.extents, .strides = {c * w * h * d, 1, c * w * h, c * w, c}, .offset = items};
    packing.copies.push_back(way == Way::out ? model::CopyPiecesTask::Piece{part, dense}
                                             : model::CopyPiecesTask::Piece{dense, part});
    items = base::checked_add(items, count);
  }
  packing.bytes = base::checked_mul(items, float_bytes);
  return packing;
}

}  // namespace orthant::schedule
