#include "orthant/data/formats/hdf5_read.hpp"

#include "orthant/base/nearest.hpp"
#include "orthant/data/arrays/convert_box.hpp"
#include "orthant/data/arrays/file_fetch.hpp"
#include "orthant/data/formats/hdf5_unpack.hpp"

#include <cassert>
#include <functional>

namespace orthant::data::formats {
namespace {

using base::Exit;
using base::fail;
using tensor::Box;
using tensor::Dim;
using tensor::Layout;
using tensor::Shape;

/// Fetches from bytes in memory.
struct MemoryFetch {
  std::span<const std::byte> all;
  std::span<const std::byte> operator()(std::int64_t first, std::int64_t bytes, std::byte*) const {
    return all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(bytes));
  }
};

/// The grid of an array's chunks.
struct ChunkGrid {
  ChunkGrid(const Hdf5Array& array, const arrays::Axes& axes, const Shape& shape)
      : extents(arrays::shape_of(array.chunk, axes)) {
    for (const Dim dim : tensor::all_dims) cells[dim] = (shape[dim] + extents[dim] - 1) / extents[dim];
    strides = arrays::layout_of(cells, axes).strides;
  }

  /// The chunks that contain `box`, as a box of the grid.
  [[nodiscard]] Box around(const Box& box) const {
    Box found;
    for (const Dim dim : tensor::all_dims)
      found.set(dim, {box.lo[dim] / extents[dim], (box.hi[dim] + extents[dim] - 1) / extents[dim]});
    return found;
  }
  [[nodiscard]] Box box_of_cell(const Shape& cell) const {
    Box box;
    for (const Dim dim : tensor::all_dims) box.set(dim, {cell[dim] * extents[dim], (cell[dim] + 1) * extents[dim]});
    return box;
  }
  [[nodiscard]] std::size_t index(const Shape& cell) const {
    std::int64_t at = 0;
    for (const Dim dim : tensor::all_dims) at += cell[dim] * strides[dim];
    return static_cast<std::size_t>(at);
  }

  Shape extents, cells, strides;
};

/// Calls visit(cell) for every position of a box.
template <class Visit>
void for_each_cell(const Box& box, Visit visit) {
  Shape cell = box.lo;
  while (!is_empty(box)) {
    visit(cell);
    auto dim = tensor::all_dims.rbegin();
    for (; dim != tensor::all_dims.rend(); ++dim) {
      if (++cell[*dim] < box.hi[*dim]) break;
      cell[*dim] = box.lo[*dim];
    }
    if (dim == tensor::all_dims.rend()) return;
  }
}

io::InputFile open_unchanged(const Hdf5Outline& outline) {
  io::InputFile file(outline.path);
  if (file.bytes() != outline.bytes) fail(Exit::bad_data, "'{}' has changed since it was opened", outline.path);
  return file;
}

}  // namespace

Hdf5Reader::Hdf5Reader(const Hdf5Outline& outline, const Hdf5Array& array, arrays::Axes axes)
    : outline_(outline),
      array_(array),
      axes_(std::move(axes)),
      shape_(arrays::shape_of(array.extents, axes_)),
      layout_(arrays::layout_of(shape_, axes_)),
      name_(outline.path + ":" + array.name) {}

/// `convert(stored, box, fetch, to)` writes a box of the stored tensor to `to`, and returns the first bad number, with
/// its position in the stored tensor.
template <class Convert>
std::int64_t Hdf5Reader::read_chunks(const io::InputFile& file, const Box& box, Convert convert) const {
  const ChunkGrid grid(array_, axes_, shape_);
  // One large read is faster than many small ones, unless little of the chunk is wanted.
  const arrays::Stored stored{
      .type = array_.type, .big_endian = array_.big_endian, .layout = arrays::layout_of(grid.extents, axes_)};
  const Layout dense = tensor::channels_last(extents_of(box));
  Hdf5Unpacker unpacker(file, array_, name_);
  std::vector<std::byte> filled;
  std::int64_t bytes = 0;
  for_each_cell(grid.around(box), [&](const Shape& cell) {
    const Hdf5Chunk& chunk = array_.chunks[grid.index(cell)];
    const Box chunk_box = grid.box_of_cell(cell);
    const Box part = tensor::intersection(box, chunk_box);
    const Box in_chunk = tensor::relative(part, chunk_box.lo);
    const Layout to = tensor::box_of(dense, tensor::relative(part, box.lo));
    if (chunk.bytes == 0) {
      if (filled.empty()) {
        for (std::int64_t i = 0; i < tensor::volume(grid.extents); ++i)
          filled.insert(filled.end(), as_bytes(std::span(array_.fill)).begin(), as_bytes(std::span(array_.fill)).end());
      }
      convert(stored, in_chunk, MemoryFetch{filled}, to, chunk_box.lo);
    } else if (array_.filters.empty() && 4 * tensor::volume(part) < tensor::volume(grid.extents)) {
      arrays::FileFetch fetch(file, chunk.offset);
      convert(stored, in_chunk, std::ref(fetch), to, chunk_box.lo);
      bytes += fetch.bytes();
    } else {
      convert(stored, in_chunk, MemoryFetch{unpacker.unpack(chunk)}, to, chunk_box.lo);
      bytes += chunk.bytes;
    }
  });
  return bytes;
}

template <class Convert>
std::int64_t Hdf5Reader::read_with(const Box& box, Convert convert) const {
  if (is_empty(box)) return 0;
  assert(tensor::contains(tensor::whole(shape_), box));
  const Layout dense = tensor::channels_last(extents_of(box));
  const arrays::Stored stored{.type = array_.type, .big_endian = array_.big_endian, .layout = layout_};
  const io::InputFile file = open_unchanged(outline_);
  if (!array_.chunk.empty()) return read_chunks(file, box, convert);
  if (!array_.inside.empty()) {
    convert(stored, box, MemoryFetch{std::as_bytes(std::span(array_.inside))}, dense, Shape{0, 0, 0, 0, 0});
    return 0;
  }
  arrays::FileFetch fetch(file, array_.offset);
  convert(stored, box, std::ref(fetch), dense, Shape{0, 0, 0, 0, 0});
  return fetch.bytes();
}

std::int64_t Hdf5Reader::read(const Box& box, std::span<float> into) const {
  assert(static_cast<std::int64_t>(into.size()) == tensor::volume(box));
  return read_with(box, [&](const arrays::Stored& from, const Box& part, const arrays::Fetch& fetch, const Layout& to,
                            const Shape& origin) {
    std::optional<arrays::BadItem> bad = arrays::convert_box(from, part, fetch, to, into.data());
    if (!bad) return;
    for (const Dim dim : tensor::all_dims) bad->at[dim] += origin[dim];
    arrays::fail_not_finite({name_, array_.extents}, layout_, *bad);
  });
}

std::int64_t Hdf5Reader::read_labels(const Box& box, std::int64_t classes, std::span<std::int32_t> into) const {
  assert(static_cast<std::int64_t>(into.size()) == tensor::volume(box));
  if (!arrays::is_integer(array_.type)) {
    fail(Exit::bad_data, "'{}' has {} numbers, but labels must be integers", name_, arrays::name_of(array_.type));
  }
  return read_with(box, [&](const arrays::Stored& from, const Box& part, const arrays::Fetch& fetch, const Layout& to,
                            const Shape& origin) {
    std::optional<arrays::BadItem> bad = arrays::convert_labels(from, part, fetch, to, into.data(), classes);
    if (!bad) return;
    for (const Dim dim : tensor::all_dims) bad->at[dim] += origin[dim];
    arrays::fail_no_class({name_, array_.extents}, layout_, *bad, classes);
  });
}

const Hdf5Array& array_named(const Hdf5Outline& outline, const std::string& name) {
  std::vector<std::string> names;
  for (const Hdf5Array& array : outline.arrays) {
    names.push_back(array.name);
    if (array.name != name) continue;
    if (!array.refused.empty())
      fail(Exit::bad_data, "'{}:{}' is {}; only plain arrays of numbers are read", outline.path, name, array.refused);
    return array;
  }
  if (names.empty()) fail(Exit::bad_data, "'{}' has no key '{}': it holds no array", outline.path, name);
  fail(Exit::bad_data, "'{}' has no key '{}'{}", outline.path, name, base::suggestion(name, names));
}

}  // namespace orthant::data::formats
