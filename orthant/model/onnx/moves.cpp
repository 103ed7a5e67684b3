#include "orthant/model/onnx/importer.hpp"

namespace orthant::model::onnx {

using tensor::Dim;
using tensor::Shape;

namespace {

/// Channels in the order of atoms that are all of them: what shuffle makes it, if one does.
std::optional<std::int64_t> shuffle_groups(const Atoms& atoms, std::int64_t channels) {
  if (atoms.size() != 2 || atoms[0].axis != Dim::c || atoms[1].axis != Dim::c) return std::nullopt;
  const bool all =
      atoms[0].step == 1 && atoms[1].step == atoms[0].extent && atoms[0].extent * atoms[1].extent == channels;
  return all ? std::optional(atoms[1].extent) : std::nullopt;
}

/// The blocks of cells that channels become, or the other way, as one pixel shuffle has them. Channels of a block may
/// stand before the other channels (ONNX) or after them (PyTorch).
struct Blocks {
  tensor::Extent3 factor = tensor::cube(1);
  bool channels_last = false;  ///< the channels of a block are the slowest
};

/// Channels to cells: dim 1 has the channels that remain, every dim of space its cells and then a part of the channels.
std::optional<Blocks> to_cells(const View& view, const Shape& shape, const std::vector<Dim>& axes) {
  Blocks blocks;
  std::int64_t all = 1;
  for (std::size_t i = 2; i < axes.size(); ++i) {
    Atoms atoms = view.dims[i];
    for (const Atom& own : whole_axis(shape, axes[i])) {
      if (atoms.empty() || atoms.front() != own) return std::nullopt;
      atoms.erase(atoms.begin());
    }
    if (atoms.size() > 1 || (atoms.size() == 1 && atoms.front().axis != Dim::c)) return std::nullopt;
    blocks.factor[axes[i]] = extent_of(atoms);
    all *= extent_of(atoms);
  }
  if (all == 1 || shape.c % all != 0) return std::nullopt;
  const std::int64_t rest = shape.c / all;
  const Atoms after = rest == 1 ? Atoms{} : Atoms{{Dim::c, rest, all}};
  const Atoms before = rest == 1 ? Atoms{} : Atoms{{Dim::c, rest, 1}};
  blocks.channels_last = view.dims[1] != after;
  if (blocks.channels_last && view.dims[1] != before) return std::nullopt;
  std::int64_t step = blocks.channels_last ? rest : 1;
  for (std::size_t i = axes.size(); i-- > 2;) {
    const std::int64_t factor = blocks.factor[axes[i]];
    if (factor == 1) continue;
    if (view.dims[i].back() != Atom{Dim::c, factor, step}) return std::nullopt;
    step *= factor;
  }
  return blocks;
}

/// Cells to channels.
std::optional<Blocks> to_channels(const View& view, const Shape& shape, const std::vector<Dim>& axes) {
  Blocks blocks;
  Atoms parts;
  for (std::size_t i = 2; i < axes.size(); ++i) {
    const std::int64_t have = extent_of(view.dims[i]);
    if (shape[axes[i]] % have != 0) return std::nullopt;
    const std::int64_t factor = shape[axes[i]] / have;
    const Atoms wanted = have == 1 ? Atoms{} : Atoms{{axes[i], have, factor}};
    if (view.dims[i] != wanted) return std::nullopt;
    blocks.factor[axes[i]] = factor;
    if (factor > 1) parts.push_back({axes[i], factor, 1});
  }
  if (parts.empty()) return std::nullopt;
  Atoms after = whole_axis(shape, Dim::c);
  after.insert(after.end(), parts.begin(), parts.end());
  Atoms before = parts;
  for (const Atom& atom : whole_axis(shape, Dim::c)) before.push_back(atom);
  blocks.channels_last = view.dims[1] != after;
  if (blocks.channels_last && view.dims[1] != before) return std::nullopt;
  return blocks;
}

}  // namespace

/// What a view that is ordered otherwise becomes by shuffles of channels and pixels.
std::optional<View> Importer::moved(const View& source) {
  const Shape before = shape(source.item);
  const int rank = static_cast<int>(source.dims.size());
  const std::vector<Dim> axes = axes_of_rank(rank);
  const auto result = [&](int item) { return plain_view(item, shape(item), rank); };
  bool space = true;
  for (std::size_t i = 2; i < axes.size(); ++i) space = space && source.dims[i] == whole_axis(before, axes[i]);
  if (space) {
    const std::optional<std::int64_t> groups = shuffle_groups(source.dims[1], before.c);
    if (!groups) return std::nullopt;
    return result(put(Op(ChannelShuffle{.groups = *groups}), {source.item}));
  }
  if (const std::optional<Blocks> blocks = to_cells(source, before, axes)) {
    const std::int64_t all = blocks->factor.d * blocks->factor.h * blocks->factor.w;
    const bool turn = blocks->channels_last && all != before.c;
    const int item = turn ? put(Op(ChannelShuffle{.groups = all}), {source.item}) : source.item;
    return result(put(Op(PixelShuffle{.factor = blocks->factor}), {item}));
  }
  if (const std::optional<Blocks> blocks = to_channels(source, before, axes)) {
    const int item = put(Op(PixelShuffle{.factor = blocks->factor, .to_channels = true}), {source.item});
    const bool turn = blocks->channels_last && before.c > 1;
    return result(turn ? put(Op(ChannelShuffle{.groups = before.c}), {item}) : item);
  }
  return std::nullopt;
}

}  // namespace orthant::model::onnx
