#include "orthant/model/traits.hpp"
#include "orthant/schedule/lowering.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using tensor::Box;
using Boxes = std::vector<Box>;

Boxes one_box(const Box& box) { return tensor::is_empty(box) ? Boxes{} : Boxes{box}; }

std::int64_t total_volume(const std::vector<tensor::Move>& moves) {
  std::int64_t sum = 0;
  for (const tensor::Move& move : moves) sum += tensor::volume(move.box);
  return sum;
}

}  // namespace

tensor::Traffic Lowering::traffic_of(const Unit& unit, std::size_t index) const {
  const auto& held = at(micro_->shares, unit.srcs[index]);
  const auto& readers = at(micro_->shares, unit.main);
  // The residual of a fused sum is read where the sum is.
  const bool residual = index >= node(unit.main).srcs.size();
  return {.ranks = plan_.ranks,
          .held = [&held](int rank) { return at(held, rank).owned; },
          .wanted =
              [&readers, index, residual](int rank) {
                const plan::Share& share = at(readers, rank);
                return residual ? one_box(share.owned) : share.sources[index];
              }};
}

/// Those who add up some of the channels have partial sums of a box that others own.
tensor::Traffic Lowering::partial_sums(int index) const {
  const auto& shares = at(micro_->shares, index);
  return {.ranks = plan_.ranks,
          .held = [&shares](int rank) { return at(shares, rank).owned; },
          .wanted = [&shares](int rank) { return one_box(at(shares, rank).computed); }};
}

tensor::Traffic Lowering::loss_traffic() const {
  const auto& shares = micro_->shares.back();
  return {.ranks = plan_.ranks,
          .held = [&shares](int rank) { return at(shares, rank).owned; },
          .wanted = [wanted = plan::loss_distribution(plan_, micro_->graph)](
                        int rank) { return one_box(tensor::owned_box(wanted, rank)); }};
}

/// True if every rank has what it reads of the source, and nothing else.
bool Lowering::is_local(const Unit& unit, std::size_t index) const {
  const tensor::Traffic traffic = traffic_of(unit, index);
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    if (traffic.wanted(rank) != one_box(traffic.held(rank))) return false;
  }
  return true;
}

Kind Lowering::kind_of(const Unit& unit, std::size_t index) const {
  const plan::NodePlan& reader = planned(unit.main);
  const plan::NodePlan& source = planned(unit.srcs[index]);
  const bool contraction = model::traits_of(node(unit.main).op).contraction.has_value();
  if (reader.first_rank != source.first_rank || tensor::parts(reader.grid) != tensor::parts(source.grid))
    return Kind::redistribution;
  if (contraction && reader.grid.c > 1) return Kind::gather;
  return reader.grid == source.grid ? Kind::halo : Kind::redistribution;
}

/// A new tensor for boxes that differ only in their channels.
Tensor Lowering::add_pieces(const std::string& name, const Boxes& boxes) {
  if (boxes.empty()) return {};
  Box around = boxes.front();
  around.hi.c = around.lo.c;
  for (const Box& box : boxes) around.hi.c += box.hi.c - box.lo.c;
  Tensor tensor{.all = add_tensor(name, around), .pieces = {}, .copied = true};
  tensor.all.box = boxes.front();
  std::int64_t first = 0;
  for (const Box& box : boxes) {
    Value piece = tensor.all;
    piece.box = box;
    piece.layout = tensor::channel_range(tensor.all.layout, first, box.hi.c - box.lo.c);
    tensor.pieces.push_back(piece);
    first += box.hi.c - box.lo.c;
  }
  return tensor;
}

/// What every rank wants of a tensor, in a new one, or in place where this rank has all it wants.
Tensor Lowering::gather(const std::string& name, Kind kind, const Value& own, const tensor::Traffic& traffic) {
  const tensor::Moves moves = tensor::moves_of(traffic, rank_);
  const Boxes boxes = traffic.wanted(rank_);
  Tensor result;
  if (boxes.size() == 1 && !own.empty() && tensor::contains(own.box, boxes.front())) {
    const Value part = part_of(own, boxes.front());
    result = {.all = part, .pieces = {part}, .copied = false};
  } else {
    result = add_pieces(name, boxes);
    for (const tensor::Move& move : moves.stays) {
      const Value from = part_of(own, move.box);
      const Value to = part_of(at(result.pieces, move.wanted), move.box);
      emit(current_node_, "keep", model::CopyTask{.src = from.layout, .dst = to.layout}, {from.buffer, to.buffer});
    }
  }
  Placed sends;
  Placed receives;
  for (const tensor::Move& move : moves.sends) sends.emplace_back(move.peer, part_of(own, move.box));
  for (const tensor::Move& move : moves.receives)
    receives.emplace_back(move.peer, part_of(at(result.pieces, move.wanted), move.box));
  finish(start(name, kind, sends, receives, false));
  return result;
}

/// The adjoint: what ranks computed for boxes they wanted goes to the owners, who add it up. Ends in `own`, in the
/// memory of `gradient` where that is possible.
Returning Lowering::give_back(const std::string& name, Kind kind, const Tensor& gradient,
                              const tensor::Traffic& traffic) {
  const tensor::Moves moves = tensor::moves_of(traffic, rank_);
  const Box owned = traffic.held(rank_);
  Returning result;
  if (!tensor::is_empty(owned)) {
    const bool inside = gradient.pieces.size() == 1 && tensor::contains(gradient.pieces.front().box, owned);
    if (inside && (gradient.all.owned || moves.sends.empty())) {
      result.own = part_of(gradient.pieces.front(), owned);
    } else {
      result.own = add_tensor(name + ".own", owned);
      if (total_volume(moves.stays) < tensor::volume(owned))
        emit(current_node_, "zero", model::FillTask{.dst = result.own.layout}, {result.own.buffer});
      for (const tensor::Move& move : moves.stays) {
        const Value from = part_of(at(gradient.pieces, move.wanted), move.box);
        const Value to = part_of(result.own, move.box);
        emit(current_node_, "keep", model::CopyTask{.src = from.layout, .dst = to.layout}, {from.buffer, to.buffer});
      }
    }
  }
  Placed sends;
  Placed receives;
  for (const tensor::Move& move : moves.receives)
    sends.emplace_back(move.peer, part_of(at(gradient.pieces, move.wanted), move.box));
  for (const tensor::Move& move : moves.sends) receives.emplace_back(move.peer, part_of(result.own, move.box));
  result.pending = start(name, kind, sends, receives, true);
  return result;
}

/// What the unit reads of its source `index`: in place where there is room for it, else gathered.
Fetching Lowering::begin_fetch(const Unit& unit, std::size_t index) {
  const int source = unit.srcs[index];
  NodeValue& value = at(micro_->values, source);
  const tensor::Traffic traffic = traffic_of(unit, index);
  const std::string& name = node(source).name;
  const bool residual = index >= node(unit.main).srcs.size();
  if (residual || !at(micro_->in_place, unit.main)[index]) {
    return {.pending = {},
            .tensor = gather(name + ".for." + node(unit.main).name, kind_of(unit, index), value.own, traffic)};
  }
  Fetching fetching;
  if (!value.filled) {
    value.filled = true;
    const auto& filled = at(micro_->filled, source);
    const tensor::Traffic all{.ranks = plan_.ranks, .held = traffic.held, .wanted = [&filled](int rank) {
                                return one_box(at(filled, rank));
                              }};
    const tensor::Moves moves = tensor::moves_of(all, rank_);
    Placed sends;
    Placed receives;
    for (const tensor::Move& move : moves.sends) sends.emplace_back(move.peer, part_of(value.own, move.box));
    for (const tensor::Move& move : moves.receives) receives.emplace_back(move.peer, part_of(value.stored, move.box));
    fetching.pending = start(name + ".halo", kind_of(unit, index), sends, receives, false);
  }
  const Boxes boxes = traffic.wanted(rank_);
  if (!boxes.empty()) fetching.tensor = as_tensor(part_of(value.stored, boxes.front()));
  return fetching;
}

Tensor Lowering::fetch(const Unit& unit, std::size_t index) {
  Fetching fetching = begin_fetch(unit, index);
  finish(std::move(fetching.pending));
  return fetching.tensor;
}

}  // namespace orthant::schedule
