#include "orthant/kernels/winograd/tiling.hpp"

#include "orthant/kernels/rounding.hpp"

#include <algorithm>
#include <numeric>

namespace orthant::kernels::winograd {
namespace {

using tensor::Dim;
using tensor::spatial_dims;

std::size_t index_of(Dim dim) { return static_cast<std::size_t>(dim) - static_cast<std::size_t>(Dim::d); }

using Triple = std::array<std::int64_t, 3>;

/// Sets what follows from the layouts and the sides.
void cut_into_tiles(Tiling& tiling) {
  for (const Dim dim : spatial_dims) {
    const std::size_t i = index_of(dim);
    tiling.tiles[i] = ceil_div(tiling.dst.extents[dim], tiling.sides[i].cells);
  }
  tiling.maps = *find_transforms(tiling.sides);
}

Tiling make_tiling(const tensor::Layout& src, const tensor::Layout& dst, const Sides& sides,
                   const tensor::Extent3& pad) {
  Tiling tiling{.src = src, .dst = dst, .sides = sides};
  for (const Dim dim : spatial_dims) tiling.pad[index_of(dim)] = pad[dim];
  cut_into_tiles(tiling);
  return tiling;
}

/// Some planes of a tensor across `dim`, in place.
tensor::Layout planes_of(const tensor::Layout& layout, Dim dim, std::int64_t first, std::int64_t count) {
  tensor::Box box = tensor::whole(layout.extents);
  box.set(dim, {first, first + count});
  return tensor::box_of(layout, box);
}

/// Strides between the items of a dense box.
Strides dense_strides(std::int64_t h_items, std::int64_t w_items, std::int64_t step) {
  return {.d = step * w_items * h_items, .h = step * w_items, .w = step};
}

Strides cell_strides(const tensor::Layout& layout) {
  return {.d = layout.strides.d, .h = layout.strides.h, .w = layout.strides.w};
}

/// The cells of one tile in src or dst, some of them perhaps outside.
struct Cells {
  const tensor::Layout& layout;
  std::int64_t n;
  Triple first, size;
};

Cells src_cells(const Tiling& tiling, const TileIndex& index) {
  Cells cells{.layout = tiling.src, .n = index.n, .first = {}, .size = {}};
  for (std::size_t i = 0; i < 3; ++i) {
    cells.first[i] = index.tile[i] * tiling.sides[i].cells - tiling.pad[i];
    cells.size[i] = tiling.sides[i].points();
  }
  return cells;
}

Cells dst_cells(const Tiling& tiling, const TileIndex& index) {
  Cells cells{.layout = tiling.dst, .n = index.n, .first = {}, .size = {}};
  for (std::size_t i = 0; i < 3; ++i) {
    cells.size[i] = tiling.sides[i].cells;
    cells.first[i] = index.tile[i] * cells.size[i];
  }
  return cells;
}

std::int64_t first_offset(const Cells& cells) {
  return offset_of(cells.layout, cells.n, cells.first[0], cells.first[1], cells.first[2]);
}

bool inside(std::int64_t first, std::int64_t size, std::int64_t extent) { return first >= 0 && first + size <= extent; }

bool inside(const Cells& cells) {
  const tensor::Shape& extents = cells.layout.extents;
  return inside(cells.first[0], cells.size[0], extents.d) && inside(cells.first[1], cells.size[1], extents.h) &&
         inside(cells.first[2], cells.size[2], extents.w);
}

template <class Float>
void point_to(const Cells& cells, Float* buffer, Float* outside, Float** pointers) {
  const auto& [layout, n, first, size] = cells;
  const tensor::Shape& extents = layout.extents;
  for (std::int64_t d = first[0]; d < first[0] + size[0]; ++d) {
    for (std::int64_t h = first[1]; h < first[1] + size[1]; ++h) {
      const bool row = inside(d, 1, extents.d) && inside(h, 1, extents.h);
      for (std::int64_t w = first[2]; w < first[2] + size[2]; ++w) {
        *pointers++ = row && inside(w, 1, extents.w) ? buffer + offset_of(layout, n, d, h, w) : outside;
      }
    }
  }
}

/// Calls visit(cells, tile, count) for tiles side by side in w whose cells all lie inside, and for each other tile.
template <class CellsOf, class Visit>
void for_each_stretch(const Tiling& tiling, const Block& block, CellsOf cells_of, Visit visit) {
  const std::int64_t step = tiling.sides[2].cells;
  for (std::int64_t tile = 0; tile < block.tiles;) {
    const TileIndex index = tiling.tile_index(block.first + tile);
    const Cells cells = cells_of(tiling, index);
    std::int64_t count = 1;
    if (inside(cells)) {
      const std::int64_t whole = (cells.layout.extents.w - cells.size[2] - cells.first[2]) / step + 1;
      count = std::min({whole, tiling.tiles[2] - index.tile[2], block.tiles - tile});
    }
    visit(cells, tile, count);
    tile += count;
  }
}

template <class CellsOf>
void map_to_points(const Tiling& tiling, Map map, CellsOf cells_of, const Block& block, const float* buffer,
                   const float* zeros, const Points<float>& points) {
  std::array<const float*, max_points> pointers{};
  for_each_stretch(tiling, block, cells_of, [&](const Cells& cells, std::int64_t tile, std::int64_t count) {
    const bool clipped = !inside(cells);
    if (clipped) point_to(cells, buffer, zeros, pointers.data());
    map({.in = clipped ? nullptr : buffer + first_offset(cells),
         .in_strides = cell_strides(cells.layout),
         .in_cells = pointers.data(),
         .out = points.memory + tile * points.tile_step,
         .out_strides = tiling.point_strides(points.point_step),
         .channels = points.channels,
         .boxes = count,
         .in_next = cells.layout.strides.w * tiling.sides[2].cells,
         .out_next = points.tile_step});
  });
}

/// One plane of dst across `dim`, which a single plane of src reaches with one tap: there the points are those of the
/// tap.
SubTiling plane_tiling(const SubTiling& whole, Dim dim, std::int64_t dst, std::int64_t src, int point) {
  SubTiling plane{.tiling = whole.tiling, .points = {}};
  plane.tiling.dst = planes_of(whole.tiling.dst, dim, dst, 1);
  plane.tiling.src = planes_of(whole.tiling.src, dim, src, 1);
  plane.tiling.sides[index_of(dim)] = one_cell;
  plane.tiling.pad[index_of(dim)] = 0;
  cut_into_tiles(plane.tiling);
  const Strides steps = whole.tiling.point_strides(1);
  const std::int64_t step = dim == Dim::d ? steps.d : dim == Dim::h ? steps.h : steps.w;
  for (const int i : whole.points) {
    if (i / step % 4 == point) plane.points.push_back(i);
  }
  return plane;
}

/// Moves the first and the last plane across `dim` to `planes`, where that pays.
void cut_off_planes(SubTiling& part, Dim dim, std::vector<SubTiling>& planes) {
  Tiling& tiling = part.tiling;
  std::int64_t& pad = tiling.pad[index_of(dim)];
  const std::int64_t src = tiling.src.extents[dim], dst = tiling.dst.extents[dim];
  // Tap 2 of the first plane lies on the first cell of src, tap 0 of the last one on the last cell.
  const std::int64_t most_first = pad == 2 ? 1 : 0;
  const std::int64_t most_last = dst - pad == src ? 1 : 0;
  std::int64_t first = 0, last = 0;
  const auto cost = [&](std::int64_t one, std::int64_t other) { return (dst - one - other + 1) / 2 * 4 + one + other; };
  for (const std::int64_t one : {std::int64_t{0}, most_first}) {
    for (const std::int64_t other : {std::int64_t{0}, most_last}) {
      if (one + other >= dst || cost(one, other) >= cost(first, last)) continue;
      first = one;
      last = other;
    }
  }
  if (first > 0) planes.push_back(plane_tiling(part, dim, 0, 0, 3));
  if (last > 0) planes.push_back(plane_tiling(part, dim, dst - 1, src - 1, 0));
  tiling.dst = planes_of(tiling.dst, dim, first, dst - first - last);
  pad -= first;
  cut_into_tiles(tiling);
}

}  // namespace

int Tiling::points() const { return sides[0].points() * sides[1].points() * sides[2].points(); }
int Tiling::cells() const { return sides[0].cells * sides[1].cells * sides[2].cells; }
int Tiling::taps() const { return sides[0].taps * sides[1].taps * sides[2].taps; }

Strides Tiling::point_strides(std::int64_t step) const {
  return dense_strides(sides[1].points(), sides[2].points(), step);
}
Strides Tiling::tap_strides(std::int64_t step) const { return dense_strides(sides[1].taps, sides[2].taps, step); }

TileIndex Tiling::tile_index(std::int64_t tile) const {
  TileIndex index;
  for (std::size_t i = 3; i-- > 0;) {
    index.tile[i] = tile % tiles[i];
    tile /= tiles[i];
  }
  index.n = tile;
  return index;
}

Sides sides_of(const tensor::Window& window, TileSize size) {
  Sides sides;
  for (const Dim dim : spatial_dims) {
    const std::int64_t taps = window.size[dim];
    const bool large = size == TileSize::large && dim != Dim::d;
    Side& side = sides[index_of(dim)];
    if (taps == 3) side = large ? four_of_three : two_of_three;
    if (taps == 5 && large) side = two_of_five;
  }
  return sides;
}

Tiling forward_tiling(const model::ConvTask& task, TileSize size) {
  return make_tiling(task.src, task.dst, sides_of(task.window, size), task.window.pad_lo);
}

Tiling backward_data_tiling(const model::ConvTask& task, TileSize size) {
  tensor::Extent3 pad;
  for (const Dim dim : spatial_dims) pad[dim] = task.window.size[dim] - 1 - task.window.pad_lo[dim];
  return make_tiling(task.dst, task.src, sides_of(task.window, size), pad);
}

Tiling correlation_tiling(const model::ConvTask& task, TileSize size) {
  return task.pass == model::Pass::forward ? forward_tiling(task, size) : backward_data_tiling(task, size);
}

std::vector<SubTiling> cut_off_planes(const Tiling& tiling) {
  SubTiling most{.tiling = tiling, .points = {}};
  most.points.resize(static_cast<std::size_t>(tiling.points()));
  std::iota(most.points.begin(), most.points.end(), 0);
  std::vector<SubTiling> planes;
  const bool several_dims = tiling.points() > 4;  // else nothing would be left to map in a plane
  for (const Dim dim : spatial_dims) {
    if (several_dims && tiling.sides[index_of(dim)] == two_of_three) cut_off_planes(most, dim, planes);
  }
  planes.insert(planes.begin(), std::move(most));
  return planes;
}

void src_to_points(const Tiling& tiling, const Block& block, const float* src, const float* zeros,
                   const Points<float>& points) {
  map_to_points(tiling, tiling.maps.src_to_points, src_cells, block, src, zeros, points);
}

void diff_to_points(const Tiling& tiling, const Block& block, const float* diff, const float* zeros,
                    const Points<float>& points) {
  map_to_points(tiling, tiling.maps.diff_to_points, dst_cells, block, diff, zeros, points);
}

void points_to_dst(const Tiling& tiling, const Block& block, const Points<const float>& points, float* dst,
                   const Finish& finish) {
  std::array<float*, max_cells> pointers{};
  for_each_stretch(tiling, block, dst_cells, [&](const Cells& cells, std::int64_t tile, std::int64_t count) {
    const bool clipped = !inside(cells);
    if (clipped) point_to(cells, dst, finish.outside, pointers.data());
    tiling.maps.points_to_dst({.in = points.memory + tile * points.tile_step,
                               .in_strides = tiling.point_strides(points.point_step),
                               .out = clipped ? nullptr : dst + first_offset(cells),
                               .out_strides = cell_strides(cells.layout),
                               .out_cells = pointers.data(),
                               .channels = points.channels,
                               .boxes = count,
                               .in_next = points.tile_step,
                               .out_next = cells.layout.strides.w * cells.size[2],
                               .bias = finish.bias,
                               .slope = finish.slope});
  });
}

}  // namespace orthant::kernels::winograd
