#include "orthant/wrapper/part.hpp"

#include "orthant/base/format.hpp"

#include <algorithm>
#include <cstdlib>

namespace orthant::wrapper {
namespace {

constexpr int row_dim = 2;
/// Tiles of Winograd's kernels have two or four rows.
constexpr std::int64_t unit = 4;

struct Rows {
  std::int64_t first = 0, last = 0;
  [[nodiscard]] std::int64_t count() const { return last - first; }
};

/// Along the outermost spatial dim.
struct Line {
  std::int64_t src = 0, dst = 0, stride = 1, pad = 0, reach = 1;
};

Line line_of(const Problem& problem) {
  const std::int64_t taps = problem.weights.dims[problem.weights.ndims - problem.spatial_dims()];
  return {.src = problem.src.dims[row_dim],
          .dst = problem.dst.dims[row_dim],
          .stride = problem.strides[0],
          .pad = problem.pad_lo[0],
          .reach = (taps - 1) * (problem.dilates[0] + 1) + 1};
}

/// What rows of dst read.
Rows read_by(const Line& line, const Rows& dst) {
  return {std::max<std::int64_t>(0, dst.first * line.stride - line.pad),
          std::min(line.src, (dst.last - 1) * line.stride - line.pad + line.reach)};
}

/// The rows of dst that read rows of src.
Rows readers_of(const Line& line, const Rows& src) {
  const std::int64_t first = src.first + line.pad - (line.reach - 1);
  return {first <= 0 ? 0 : (first + line.stride - 1) / line.stride,
          std::min(line.dst, (src.last - 1 + line.pad) / line.stride + 1)};
}

void set_rows(dnnl_memory_desc_t& memory, std::int64_t rows) {
  memory.dims[row_dim] = memory.padded_dims[row_dim] = rows;
}

std::optional<Part> part_of(const Problem& problem, const Line& line, const Rows& src, const Rows& dst) {
  const std::int64_t pad = src.first - dst.first * line.stride + line.pad;
  if (src.count() < 1 || dst.count() < 1 || pad < 0) return std::nullopt;
  Part part{.problem = problem, .src_row = src.first, .dst_row = dst.first};
  set_rows(part.problem.src, src.count());
  set_rows(part.problem.dst, dst.count());
  const std::int64_t pad_hi = (dst.count() - 1) * line.stride + line.reach - src.count() - pad;
  part.problem.pad_lo[0] = pad;
  part.problem.pad_hi[0] = pad_hi;
  const tensor::Dim dim = tensor::spatial_dims[static_cast<std::size_t>(3 - problem.spatial_dims())];
  part.problem.window.pad_lo[dim] = pad;
  part.problem.window.pad_hi[dim] = std::max<std::int64_t>(pad_hi, 0);
  return part;
}

}  // namespace

std::optional<std::vector<Part>> parts_of(const Problem& problem, const Cut& cut) {
  Problem piece = problem;
  for (dnnl_memory_desc_t* memory : {&piece.src, &piece.dst}) memory->dims[0] = memory->padded_dims[0] = cut.samples;
  if (cut.slabs == 1) return std::vector{Part{.problem = piece}};
  const Line line = line_of(problem);
  const bool by_src = problem.pass == model::Pass::backward_data;
  const std::int64_t rows = by_src ? line.src : line.dst;
  const std::int64_t step = ((rows + cut.slabs - 1) / cut.slabs + unit - 1) / unit * unit;
  std::vector<Part> parts;
  for (std::int64_t first = 0; first < rows; first += step) {
    const Rows written{first, std::min(rows, first + step)};
    const auto part = by_src ? part_of(piece, line, written, readers_of(line, written))
                             : part_of(piece, line, read_by(line, written), written);
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  return parts;
}

std::string to_text(const Cut& cut) {
  return cut.slabs == 1 ? fmt::format("{}", cut.samples) : fmt::format("{}/{}", cut.samples, cut.slabs);
}

std::optional<Cut> cut_from(const std::string& text) {
  const std::size_t slash = text.find('/');
  const Cut cut{.samples = std::atoll(text.c_str()),
                .slabs = slash == std::string::npos ? 1 : std::atoll(text.c_str() + slash + 1)};
  return cut.samples >= 1 && cut.slabs >= 1 && to_text(cut) == text ? std::optional(cut) : std::nullopt;
}

}  // namespace orthant::wrapper
