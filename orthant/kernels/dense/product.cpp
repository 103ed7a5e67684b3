#include "orthant/kernels/dense/product.hpp"

#include "orthant/kernels/machine.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>

namespace orthant::kernels::dense {
namespace {

constexpr std::int64_t panel_floats = 5120;  // a panel of b that stays in the first-level cache
constexpr std::int64_t most_depth = 256;     // terms summed in a register: the rounding error grows with their number

}  // namespace

// A quarter of the second-level cache each for a block of b, what it adds to of c, and the copies of a.
Product::Product(const Extents& extents, int threads) : extents_(extents), tiles_(matrix::tiles()) {
  const std::int64_t quarter = second_level_cache_bytes() / 4 / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t deepest = std::min(most_depth, panel_floats / tiles_.panel);
  depth_ = ceil_div(extents.inner, std::max<std::int64_t>(ceil_div(extents.inner, deepest), 1));
  const std::int64_t most_rows =
      round_up(std::max<std::int64_t>(quarter / std::max<std::int64_t>(depth_, 1), 1), tiles_.most_rows);
  copy_rows_ =
      std::min(ceil_div(extents.rows, ceil_div(std::max<std::int64_t>(extents.rows, 1), most_rows)), most_rows);
  copy_row_ = round_up(depth_, line_floats) + line_floats;
  const std::int64_t wide = quarter / std::max({depth_, extents.rows, std::int64_t{1}}) / tiles_.panel * tiles_.panel;
  const std::int64_t most_width = round_up(ceil_div(extents.columns, threads), tiles_.panel);
  width_ = std::min(std::max<std::int64_t>(wide, 2 * tiles_.panel), most_width);
  packed_floats_ = width_ / tiles_.panel * panel_step(depth_);
}

/// Panels are a cache line further apart than they are long, so that those of a block do not alias.
std::int64_t Product::panel_step(std::int64_t depth) const {
  return round_up(depth * tiles_.panel, line_floats) + line_floats;
}

/// Columns are divided, whole cache lines each, or rows where there are few columns.
Part Product::part(int thread, int team) const {
  Part part{.rows = {0, extents_.rows}, .columns = {0, extents_.columns}};
  const std::int64_t unit = std::max<std::int64_t>(tiles_.panel, line_floats);
  const std::int64_t units = ceil_div(extents_.columns, unit);
  if (units >= team || extents_.rows < team * tiles_.most_rows) {
    part.columns = {share(units, thread, team) * unit,
                    std::min(extents_.columns, share(units, thread + 1, team) * unit)};
  } else {
    part.rows = {share(extents_.rows, thread, team), share(extents_.rows, thread + 1, team)};
  }
  return part;
}

void Product::run(const Operands& operands, const Part& part, float* memory) const {
  float* const copy = memory + packed_floats_;
  for (std::int64_t n = part.columns.begin; n < part.columns.end; n += width_) {
    const Range columns{n, std::min(n + width_, part.columns.end)};
    for (std::int64_t k = 0; k < extents_.inner; k += depth_) {
      const Range inner{k, std::min(k + depth_, extents_.inner)};
      for (std::int64_t m = part.rows.begin; m < part.rows.end; m += copy_rows_) {
        const Range rows{m, std::min(m + copy_rows_, part.rows.end)};
        for (std::int64_t row = rows.begin; row < rows.end; ++row)
          std::copy_n(operands.a + row * operands.a_row + k, inner.end - k, copy + (row - m) * copy_row_);
        multiply(operands, {.rows = rows, .columns = columns}, inner, m == part.rows.begin, memory);
      }
    }
  }
}

const float* Product::weights_at(const Operands& operands, std::int64_t k, std::int64_t n) const {
  return operands.weights + (extents_.transposed ? n * extents_.inner + k : k * extents_.columns + n);
}

/// Rows of the weights that lie along the columns are packed for all panels of the block at once.
void Product::pack_block(const Operands& operands, Range columns, Range inner, float* to) const {
  const std::int64_t depth = inner.end - inner.begin;
  matrix::pack({.from = weights_at(operands, inner.begin, columns.begin),
                .step = extents_.columns,
                .depth = depth,
                .columns = columns.end - columns.begin,
                .to = to,
                .panel = tiles_.panel,
                .panel_step = panel_step(depth)});
}

void Product::pack_panel(const Operands& operands, Range columns, Range inner, float* to) const {
  matrix::pack_transposed({.from = weights_at(operands, inner.begin, columns.begin),
                           .step = extents_.inner,
                           .depth = inner.end - inner.begin,
                           .columns = columns.end - columns.begin,
                           .to = to,
                           .panel = tiles_.panel,
                           .panel_step = 0});
}

/// What comes from memory while the panel at column n is multiplied: the next panel, or a part of the next block.
matrix::Ahead Product::ahead_of(const Operands& operands, Range columns, Range inner, std::int64_t n) const {
  const std::int64_t depth = inner.end - inner.begin;
  if (extents_.transposed) {
    const std::int64_t lines = ceil_div(depth, line_floats);
    const std::int64_t calls = ceil_div(tiles_.panel * lines, depth);
    return {.calls = calls,
            .from = weights_at(operands, inner.begin, n + tiles_.panel),
            .next = ceil_div(tiles_.panel, calls) * extents_.inner,
            .step = line_floats,
            .row = extents_.inner,
            .lines = lines};
  }
  const std::int64_t width = columns.end - columns.begin;
  const std::int64_t lines = ceil_div(width, line_floats);
  const std::int64_t calls = ceil_div(tiles_.panel, line_floats);
  const std::int64_t rows = ceil_div(depth * tiles_.panel, width);  // for this panel
  const bool below = inner.end < extents_.inner;
  return {.calls = calls,
          .from = weights_at(operands, below ? inner.end : 0, below ? columns.begin : columns.end) +
                  (n - columns.begin) / tiles_.panel * rows * extents_.columns,
          .next = ceil_div(rows, calls) * extents_.columns,
          .step = line_floats,
          .row = extents_.columns,
          .lines = lines};
}

void Product::multiply(const Operands& operands, const Part& block, Range inner, bool first_rows, float* memory) const {
  const std::int64_t depth = inner.end - inner.begin;
  matrix::TileCall call{.a = memory + packed_floats_,
                        .a_row = copy_row_,
                        .depth = depth,
                        .c_row = operands.c_row,
                        .first = inner.begin == 0,
                        .last = false};
  if (first_rows && !extents_.transposed) pack_block(operands, block.columns, inner, memory);
  for (std::int64_t n = block.columns.begin; n < block.columns.end; n += tiles_.panel) {
    float* const packed = memory + (n - block.columns.begin) / tiles_.panel * panel_step(depth);
    call.b = packed;
    call.c = operands.c + block.rows.begin * operands.c_row + n;
    call.columns = std::min<std::int64_t>(tiles_.panel, block.columns.end - n);
    if (first_rows && extents_.transposed) pack_panel(operands, {n, n + call.columns}, inner, packed);
    matrix::multiply_rows(call, block.rows.end - block.rows.begin,
                          first_rows ? ahead_of(operands, block.columns, inner, n) : matrix::Ahead{});
  }
}

}  // namespace orthant::kernels::dense
