#include "orthant/schedule/lowering.hpp"

#include <algorithm>

namespace orthant::schedule {

using tensor::Box;

/// True if on every rank what the unit reads of a source may lie in one buffer with what the rank owns of it: the
/// box around both has little else. So it is for halos and gathered channels, not for other cuts of the tensor.
bool Lowering::fits_in_place(const Micro& micro, const Unit& unit, std::size_t index) const {
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    const Box& owned = at(at(micro.shares, unit.srcs[index]), rank).owned;
    const auto& wanted = at(at(micro.shares, unit.main), rank).sources[index];
    if (wanted.size() > 1) return false;
    if (wanted.empty()) continue;
    const std::int64_t common = tensor::volume(tensor::intersection(owned, wanted.front()));
    const std::int64_t both = tensor::volume(owned) + tensor::volume(wanted.front()) - common;
    if (4 * tensor::volume(tensor::bounding(owned, wanted.front())) > 5 * both) return false;
  }
  return true;
}

/// The box each rank keeps of each node's dst: what it owns and, around it, what readers want of others. That arrives
/// once for all readers, so only those of one pipeline stage may read in place: ranks of a later stage would wait for
/// it before the pass in which the others send it.
void Lowering::find_storage(Micro& micro) const {
  for (const auto& shares : micro.shares) {
    std::vector<Box> boxes;
    boxes.reserve(shares.size());
    for (const plan::Share& share : shares) boxes.push_back(share.owned);
    micro.stored.push_back(std::move(boxes));
    micro.filled.emplace_back(shares.size());
    micro.in_place.emplace_back();
  }
  std::vector<int> stage_of_readers(graph_.nodes.size(), -1);
  for (const Unit& unit : units_) {
    for (std::size_t i = 0; i < at(graph_.nodes, unit.main).srcs.size(); ++i) {
      int& stage = at(stage_of_readers, unit.srcs[i]);
      const bool fits = (stage < 0 || stage == planned(unit.main).stage) && fits_in_place(micro, unit, i);
      at(micro.in_place, unit.main).push_back(fits);
      if (!fits) continue;
      stage = planned(unit.main).stage;
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        const auto& wanted = at(at(micro.shares, unit.main), rank).sources[i];
        if (wanted.empty()) continue;
        Box& stored = at(at(micro.stored, unit.srcs[i]), rank);
        Box& filled = at(at(micro.filled, unit.srcs[i]), rank);
        stored = tensor::bounding(stored, wanted.front());
        filled = tensor::bounding(filled, wanted.front());
      }
    }
  }
}

}  // namespace orthant::schedule
