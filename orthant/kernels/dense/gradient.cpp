#include "orthant/kernels/dense/gradient.hpp"

#include "orthant/kernels/machine.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/streaming.hpp"
#include "orthant/kernels/team.hpp"

#include <hwy/cache_control.h>

#include <algorithm>

namespace orthant::kernels::dense {
namespace {

constexpr std::int64_t most_samples = 1024;  // packed at a time
constexpr std::int64_t panel_floats = 5120;  // a panel of src that stays in the first-level cache
constexpr std::int64_t most_terms = 72;      // summed in a register: the rounding error grows with their number
constexpr std::int64_t most_width = 4096;

}  // namespace

// Half of the second-level cache is for a block of src, an eighth for diff_dst.
Gradient::Gradient(const Shape& shape, bool accumulate, int threads)
    : shape_(shape), accumulate_(accumulate), tiles_(matrix::tiles()) {
  const std::int64_t cache = second_level_cache_bytes() / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t blocks = std::max<std::int64_t>(ceil_div(shape.samples, most_samples), 1);
  depth_ = std::max<std::int64_t>(ceil_div(shape.samples, blocks), 1);
  row_panel_ = std::max<std::int64_t>(ceil_div(shape.outputs, ceil_div(shape.outputs, tiles_.most_rows)), 1);
  width_ = std::min({std::max<std::int64_t>(cache / 2 / depth_ / tiles_.panel, 2) * tiles_.panel,
                     round_up(ceil_div(shape.inputs, threads), tiles_.panel), most_width});
  height_ = std::min(std::max<std::int64_t>(cache / 8 / depth_ / row_panel_, 1) * row_panel_,
                     round_up(shape.outputs, row_panel_));
  stream_ = depth_ == shape.samples && depth_ <= std::max(panel_floats / tiles_.panel, most_terms) && !accumulate &&
            writes_around_cache(shape.inputs * shape.outputs, shape.inputs, tiles_.panel);
  src_floats_ = round_up(width_ * depth_, line_floats);
  diff_floats_ = round_up(height_ * depth_, line_floats);
}

void Gradient::run(const Operands& operands, int thread, int team, float* memory) const {
  Range inputs{0, shape_.inputs}, outputs{0, shape_.outputs};
  const std::int64_t unit = std::max<std::int64_t>(tiles_.panel, line_floats);
  const std::int64_t units = ceil_div(shape_.inputs, unit);
  if (units >= team) {
    inputs = {share(units, thread, team) * unit, std::min(shape_.inputs, share(units, thread + 1, team) * unit)};
  } else {
    outputs = {share(shape_.outputs, thread, team), share(shape_.outputs, thread + 1, team)};
  }
  for (std::int64_t i = inputs.begin; i < inputs.end; i += width_) {
    const Range block{i, std::min(i + width_, inputs.end)};
    for (std::int64_t n = 0; n < shape_.samples; n += depth_)
      run_block(operands, {n, std::min(n + depth_, shape_.samples)}, block, outputs, memory);
    if (shape_.samples > 0 || accumulate_) continue;
    for (std::int64_t o = outputs.begin; o < outputs.end; ++o)
      std::fill(operands.diff_weights + o * shape_.inputs + block.begin,
                operands.diff_weights + o * shape_.inputs + block.end, 0.0F);
  }
  if (stream_) hwy::FlushStream();
}

void Gradient::run_block(const Operands& operands, Range samples, Range inputs, Range outputs, float* memory) const {
  const std::int64_t depth = samples.end - samples.begin;
  matrix::pack({.from = operands.src + samples.begin * shape_.src_step + inputs.begin,
                .step = shape_.src_step,
                .depth = depth,
                .columns = inputs.end - inputs.begin,
                .to = memory,
                .panel = tiles_.panel,
                .panel_step = tiles_.panel * depth});
  const std::int64_t pieces = ceil_div(depth, std::max(panel_floats / tiles_.panel, most_terms));
  for (std::int64_t o = outputs.begin; o < outputs.end; o += height_) {
    const Range rows{o, std::min(o + height_, outputs.end)};
    matrix::pack({.from = operands.diff_dst + samples.begin * shape_.dst_step + o,
                  .step = shape_.dst_step,
                  .depth = depth,
                  .columns = rows.end - rows.begin,
                  .to = memory + src_floats_,
                  .panel = row_panel_,
                  .panel_step = row_panel_ * depth});
    const Block block{.inputs = inputs, .outputs = rows, .samples = samples};
    if (pieces == 1) {
      multiply_row_by_row(operands, block, memory);
      continue;
    }
    for (int piece = 0; piece < static_cast<int>(pieces); ++piece)
      multiply_in_cache(
          operands, block,
          {share(depth, piece, static_cast<int>(pieces)), share(depth, piece + 1, static_cast<int>(pieces))}, memory);
  }
}

/// One register tile: row panel at output o, column panel at input i, some of the packed samples.
void Gradient::multiply_tile(const Operands& operands, const Block& block, const Tile& tile,
                             const float* memory) const {
  const std::int64_t packed = block.samples.end - block.samples.begin;
  const std::int64_t depth = tile.samples.end - tile.samples.begin;
  const std::int64_t run = ceil_div(depth, ceil_div(depth, most_terms));
  const matrix::TileCall call{
      .a = memory + src_floats_ + (tile.output - block.outputs.begin) * packed + tile.samples.begin * row_panel_,
      .a_row = 1,
      .a_step = row_panel_,
      .b = memory + (tile.input - block.inputs.begin) * packed + tile.samples.begin * tiles_.panel,
      .depth = depth,
      .c = operands.diff_weights + tile.output * shape_.inputs + tile.input,
      .c_row = shape_.inputs,
      .columns = std::min<std::int64_t>(tiles_.panel, block.inputs.end - tile.input),
      .first = block.samples.begin + tile.samples.begin == 0 && !accumulate_,
      .last = false,
      .stream = stream_ && is_aligned(operands.diff_weights),
      .ahead = memory + (tile.input + tiles_.panel - block.inputs.begin) * packed + tile.samples.begin * tiles_.panel,
      .ahead_row = run * line_floats,
      .ahead_lines = run};
  const auto& tiles = depth > run ? tiles_.rows_by_runs : tiles_.rows;
  tiles[static_cast<std::size_t>(std::min(row_panel_, block.outputs.end - tile.output) - 1)](call);
}

/// Writes rows of weights from left to right.
void Gradient::multiply_row_by_row(const Operands& operands, const Block& block, const float* memory) const {
  const Range samples{0, block.samples.end - block.samples.begin};
  for (std::int64_t o = block.outputs.begin; o < block.outputs.end; o += row_panel_) {
    for (std::int64_t i = block.inputs.begin; i < block.inputs.end; i += tiles_.panel)
      multiply_tile(operands, block, {.output = o, .input = i, .samples = samples}, memory);
  }
}

/// With many samples a piece of a panel of src stays in the first-level cache, and the block of weights in the second.
void Gradient::multiply_in_cache(const Operands& operands, const Block& block, Range samples,
                                 const float* memory) const {
  for (std::int64_t i = block.inputs.begin; i < block.inputs.end; i += tiles_.panel) {
    for (std::int64_t o = block.outputs.begin; o < block.outputs.end; o += row_panel_)
      multiply_tile(operands, block, {.output = o, .input = i, .samples = samples}, memory);
  }
}

}  // namespace orthant::kernels::dense
