#include "orthant/model/pieces.hpp"

#include "orthant/tensor/window_boxes.hpp"

#include <algorithm>

namespace orthant::model {
namespace {

using tensor::Box;
using tensor::Dim;
using tensor::Range;

/// The tensor that slabs are parts of.
const tensor::Layout& computed(const ConvTask& task) { return task.pass == Pass::backward_data ? task.src : task.dst; }

Dim slab_dim(const ConvTask& task) {
  const auto has_cells = [&](Dim dim) { return computed(task).extents[dim] > 1; };
  const auto found = std::find_if(tensor::spatial_dims.begin(), tensor::spatial_dims.end(), has_cells);
  return found == tensor::spatial_dims.end() ? Dim::w : *found;
}

/// Part `index` of `parts` nearly equal ones.
Range part_of(std::int64_t cells, std::int64_t index, std::int64_t parts) {
  return {cells * index / parts, cells * (index + 1) / parts};
}

/// The cells of src that dst cells read. A kernel must have at least one, even where only padding is read.
Range read_by(const ConvTask& task, Dim dim, const Range& cells) {
  const std::int64_t src = task.src.extents[dim];
  Range read = tensor::cells_read(task.window, dim, cells, task.src.extents, task.dst.extents);
  read.lo = std::min(read.lo, src - 1);
  read.hi = std::max(read.hi, read.lo + 1);
  return read;
}

/// The part of the task that computes `samples`, and of them the slab `cells`.
ConvTask part_of(const ConvTask& whole, const Range& samples, Dim dim, const Range& cells) {
  Box src = tensor::whole(whole.src.extents), dst = tensor::whole(whole.dst.extents);
  src.set(Dim::n, samples);
  dst.set(Dim::n, samples);
  if (cells.hi - cells.lo < computed(whole).extents[dim]) {
    const bool of_src = whole.pass == Pass::backward_data;
    src.set(dim, of_src ? cells : read_by(whole, dim, cells));
    dst.set(dim, of_src ? tensor::cells_reading(whole.window, dim, cells, whole.dst.extents) : cells);
  }
  ConvTask part = whole;
  part.window = tensor::local_window(whole.window, src, dst);
  part.src = tensor::box_of(whole.src, src);
  part.dst = tensor::box_of(whole.dst, dst);
  return part;
}

}  // namespace

std::int64_t most_slabs(const ConvTask& task) { return computed(task).extents[slab_dim(task)]; }

std::vector<ConvTask> divided(const ConvTask& whole, std::span<const ConvPiece> pieces) {
  if (pieces.empty()) return {whole};
  const Dim dim = slab_dim(whole);
  const std::int64_t cells = computed(whole).extents[dim], all = whole.src.extents.n;
  std::vector<ConvTask> parts;
  std::int64_t first = 0;
  for (std::size_t i = 0; first < all; ++i) {
    const ConvPiece& piece = pieces[i % pieces.size()];
    const Range samples{first, std::min(all, first + std::max<std::int64_t>(1, piece.samples))};
    const std::int64_t slabs = std::clamp<std::int64_t>(piece.slabs, 1, cells);
    for (std::int64_t slab = 0; slab < slabs; ++slab) {
      ConvTask part = part_of(whole, samples, dim, part_of(cells, slab, slabs));
      part.algorithm = piece.algorithm;
      part.accumulate = whole.accumulate || (whole.pass == Pass::backward_weights && !parts.empty());
      parts.push_back(part);
    }
    first = samples.hi;
  }
  return parts;
}

}  // namespace orthant::model
