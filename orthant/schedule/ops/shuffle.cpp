#include "orthant/model/traits.hpp"
#include "orthant/schedule/ops/ops.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace orthant::schedule::ops {
namespace {

using Piece = model::CopyPiecesTask::Piece;
using tensor::Dim;

/// The steps from `first` on along a dim of a layout that are `step` apart.
void take(tensor::Layout& layout, Dim dim, std::int64_t first, std::int64_t step, std::int64_t count) {
  layout.offset += first * layout.strides[dim];
  layout.strides[dim] *= step;
  layout.extents[dim] = count;
}

/// For every group the channels of src, side by side, and those of dst, `groups` apart.
std::vector<Piece> shuffled(const tensor::Layout& src, const Value& dst, std::int64_t groups) {
  std::vector<Piece> pieces;
  std::int64_t first = 0;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t skipped = ((group - dst.box.lo.c) % groups + groups) % groups;
    const std::int64_t count = (dst.box.hi.c - dst.box.lo.c - skipped + groups - 1) / groups;
    if (count <= 0) continue;
    Piece piece{.src = src, .dst = dst.layout};
    take(piece.src, Dim::c, first, 1, count);
    take(piece.dst, Dim::c, skipped, groups, count);
    pieces.push_back(piece);
    first += count;
  }
  return pieces;
}

/// Those of [lo, hi) that are in [of_lo, of_hi) when multiplied by `factor` and moved by `shift`.
tensor::Range both(const tensor::Range& range, const tensor::Range& of, std::int64_t factor, std::int64_t shift) {
  const auto rounded_up = [&](std::int64_t end) { return end <= shift ? 0 : (end - shift + factor - 1) / factor; };
  return {std::max(range.lo, rounded_up(of.lo)), std::min(range.hi, rounded_up(of.hi))};
}

/// A piece for every cell of a block. `coarse` has the blocks as channels of its cells, `fine` as cells; of each there
/// may be a part, and what both have goes from one to the other.
std::vector<Piece> blocks(const Value& coarse, const Value& fine, const tensor::Extent3& factor, bool to_fine) {
  const std::int64_t count = factor.d * factor.h * factor.w;
  std::vector<Piece> pieces;
  for (std::int64_t place = 0; place < count; ++place) {
    const tensor::Extent3 at{place / (factor.h * factor.w), place / factor.w % factor.h, place % factor.w};
    tensor::Layout many = coarse.layout, few = fine.layout;
    const tensor::Range channels = both(fine.box[Dim::c], coarse.box[Dim::c], count, place);
    bool has_cells = channels.lo < channels.hi;
    take(many, Dim::c, channels.lo * count + place - coarse.box.lo.c, count, channels.hi - channels.lo);
    take(few, Dim::c, channels.lo - fine.box.lo.c, 1, channels.hi - channels.lo);
    for (const Dim dim : tensor::spatial_dims) {
      const tensor::Range cells = both(coarse.box[dim], fine.box[dim], factor[dim], at[dim]);
      has_cells = has_cells && cells.lo < cells.hi;
      take(many, dim, cells.lo - coarse.box.lo[dim], 1, cells.hi - cells.lo);
      take(few, dim, cells.lo * factor[dim] + at[dim] - fine.box.lo[dim], factor[dim], cells.hi - cells.lo);
    }
    if (!has_cells) continue;
    pieces.push_back(to_fine ? Piece{.src = many, .dst = few} : Piece{.src = few, .dst = many});
  }
  return pieces;
}

std::vector<Piece> pieces_of(const model::ChannelShuffle& op, const Value& x, const Value& y) {
  return shuffled(x.layout, y, op.groups);
}

std::vector<Piece> pieces_of(const model::PixelShuffle& op, const Value& x, const Value& y) {
  return op.to_channels ? blocks(y, x, op.factor, false) : blocks(x, y, op.factor, true);
}

template <class Op>
NodeValue shuffle(Lowering& lowering, const Unit& unit, const Op& op) {
  const Tensor x = lowering.source(unit) = lowering.fetch(unit);
  const NodeValue y = lowering.add_dst(unit);
  if (y.own.empty()) return y;
  lowering.emitter().emit(unit.main, "forward", model::CopyPiecesTask{.pieces = pieces_of(op, x.all, y.own)},
                          {x.all.buffer, y.own.buffer});
  return y;
}

/// The same items the other way. What was read for the sake of others' items has no gradient here.
template <class Op>
void shuffle_back(Lowering& lowering, const Unit& unit, const Op& op) {
  const Value diff = lowering.take_gradient(unit.out);
  if (diff.empty()) return lowering.pass_back(unit, 0, {});
  const Tensor diff_x = lowering.add_diff_src(unit);
  std::vector<Piece> pieces = pieces_of(op, diff_x.all, diff);
  std::int64_t items = 0;
  for (Piece& piece : pieces) {
    std::swap(piece.src, piece.dst);
    items += tensor::volume(piece.src.extents);
  }
  Emitter& emitter = lowering.emitter();
  if (items < tensor::volume(diff_x.all.layout.extents))
    emitter.emit(unit.main, "zero", model::FillTask{.dst = diff_x.all.layout}, {diff_x.all.buffer});
  emitter.emit(unit.main, "backward_data", model::CopyPiecesTask{.pieces = std::move(pieces)},
               {diff.buffer, diff_x.all.buffer});
  lowering.pass_back(unit, 0, diff_x);
}

}  // namespace

NodeValue forward(Lowering& lowering, const Unit& unit, const model::ChannelShuffle& op) {
  return shuffle(lowering, unit, op);
}
NodeValue forward(Lowering& lowering, const Unit& unit, const model::PixelShuffle& op) {
  return shuffle(lowering, unit, op);
}
void backward(Lowering& lowering, const Unit& unit, const model::ChannelShuffle& op) {
  shuffle_back(lowering, unit, op);
}
void backward(Lowering& lowering, const Unit& unit, const model::PixelShuffle& op) { shuffle_back(lowering, unit, op); }

}  // namespace orthant::schedule::ops
