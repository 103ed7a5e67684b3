#include "orthant/kernels/direct/tiles.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/machine.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"
#include "orthant/kernels/winograd/conv.hpp"
#include "orthant/kernels/winograd/scratch.hpp"
#include "orthant/kernels/winograd/tiling.hpp"

#include <algorithm>

namespace orthant::kernels::winograd {
namespace {

constexpr std::int64_t longest_run = 32;  // tiles whose products are added up one by one: longer runs round worse
constexpr std::int64_t out_panel = 64;    // outputs that are multiplied together: their points stay in cache

/// Tiles whose points are in memory together. The sums of all weights are read and written once for so many.
std::int64_t tiles_of_stage(std::int64_t count, std::int64_t floats_per_tile, std::int64_t sums_floats) {
  const std::int64_t most_floats =
      std::max(third_level_cache_bytes() / 2 / static_cast<std::int64_t>(sizeof(float)), sums_floats);
  const std::int64_t most =
      std::max<std::int64_t>(most_floats / floats_per_tile / longest_run * longest_run, longest_run);
  return ceil_div(count, ceil_div(count, most));
}

/// backward_weights where every tile is transformed once: all threads transform a stage of tiles, for all channels,
/// then all of them multiply it, each at some of the points.
class StagedGradient final : public Primitive {
 public:
  StagedGradient(const model::ConvTask& task, Kind kind, int threads);
  [[nodiscard]] std::string name() const override { return name_of(kind_, tiling_) + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return scratch_.bytes(); }
  void execute(const Context& context, std::span<void* const> arguments, void* scratch) override;

 private:
  struct Memory {
    const float* src;
    const float* diff;
    float* diff_weights;
    float* scratch;
  };
  /// One point, and some of the outputs.
  struct Product {
    std::int64_t point, out_first, out_count;
  };
  void transform(const Memory& memory, std::int64_t group, const Block& block, std::int64_t at) const;
  void multiply(const Memory& memory, const Product& product, std::int64_t tiles, bool add) const;
  void multiply_rows(direct::WeightTileCall call, std::int64_t tiles, std::int64_t vectors, std::int64_t rows) const;
  void finish(const Memory& memory, std::int64_t group, std::int64_t in, float* row) const;
  void run_group(const Context& context, const Memory& memory, std::int64_t group) const;

  Kind kind_;
  Tiling tiling_;
  int threads_;
  bool accumulate_;
  std::int64_t groups_, in_, out_, lanes_;
  std::int64_t in_row_, out_row_;  ///< floats from tile to tile
  std::int64_t stage_, in_point_, out_point_, sums_point_;
  direct::WeightTiles tiles_;
  std::unique_ptr<Primitive> bias_;  ///< sums diff_dst; null without a bias
  Scratch scratch_;
  std::int64_t bias_at_ = 0;
  std::int64_t in_points_at_, out_points_at_, sums_at_, zeros_at_, rows_at_;
};

StagedGradient::StagedGradient(const model::ConvTask& task, Kind kind, int threads)
    : kind_(kind),
      tiling_(forward_tiling(task, tile_size(kind))),
      threads_(threads),
      accumulate_(task.accumulate),
      groups_(task.groups),
      in_(task.src.extents.c / groups_),
      out_(task.dst.extents.c / groups_),
      tiles_(direct::weight_tiles()) {
  lanes_ = tiles_.lanes;
  in_row_ = round_up(in_, lanes_);
  out_row_ = round_up(out_, lanes_);
  const std::int64_t points = tiling_.points();
  sums_point_ = in_ * out_row_ + skew;
  stage_ = tiles_of_stage(tiling_.count(), points * (in_row_ + out_row_), points * sums_point_);
  in_point_ = stage_ * in_row_ + skew;
  out_point_ = stage_ * out_row_ + skew;
  in_points_at_ = scratch_.shared(points * in_point_);
  out_points_at_ = scratch_.shared(points * out_point_);
  sums_at_ = scratch_.shared(points * sums_point_);
  zeros_at_ = scratch_.shared(std::max(in_row_, out_row_));
  rows_at_ = scratch_.per_thread(accumulate_ ? tiling_.taps() * out_row_ : 0, threads);
  if (task.bias) {
    bias_ = elementwise::make_bias_gradient({.accumulate = task.accumulate, .dst = task.dst}, threads);
    bias_at_ = scratch_.shared(ceil_div(bias_->scratch_bytes(), sizeof(float)));
  }
}

/// Tiles whose points begin at tile `at` of the stage.
void StagedGradient::transform(const Memory& memory, std::int64_t group, const Block& block, std::int64_t at) const {
  const float* const zeros = memory.scratch + zeros_at_;
  src_to_points(tiling_, block, memory.src + group * in_, zeros,
                {.memory = memory.scratch + in_points_at_ + at * in_row_,
                 .point_step = in_point_,
                 .tile_step = in_row_,
                 .channels = in_});
  diff_to_points(tiling_, block, memory.diff + group * out_, zeros,
                 {.memory = memory.scratch + out_points_at_ + at * out_row_,
                  .point_step = out_point_,
                  .tile_step = out_row_,
                  .channels = out_});
}

/// Some rows of the sums: run by run, so that they stay in the first-level cache.
void StagedGradient::multiply_rows(direct::WeightTileCall call, std::int64_t tiles, std::int64_t vectors,
                                   std::int64_t rows) const {
  const auto function = tiles_.outer[static_cast<std::size_t>(vectors - 1)][static_cast<std::size_t>(rows - 1)];
  const std::int64_t runs = ceil_div(tiles, longest_run);
  for (std::int64_t run = 0, first = 0; run < runs; ++run) {
    const std::int64_t end = (run + 1) * tiles / runs;
    call.pixels = end - first;
    function(call);
    call.src += call.pixels * call.src_step;
    call.diff += call.pixels * call.diff_step;
    call.add = true;
    first = end;
  }
}

void StagedGradient::multiply(const Memory& memory, const Product& product, std::int64_t tiles, bool add) const {
  const direct::RowPair row{};
  const std::int64_t most_vectors = tiles_.rows[3] >= 6 ? 4 : 2;
  const float* const src = memory.scratch + in_points_at_ + product.point * in_point_;
  const float* const diff = memory.scratch + out_points_at_ + product.point * out_point_;
  float* const sums = memory.scratch + sums_at_ + product.point * sums_point_;
  for (std::int64_t o = product.out_first; o < product.out_first + product.out_count;) {
    const std::int64_t left = product.out_first + product.out_count - o;
    const std::int64_t vectors = std::min(ceil_div(left, lanes_), most_vectors);
    const std::int64_t most = tiles_.rows[static_cast<std::size_t>(vectors - 1)];
    const std::int64_t rows = ceil_div(in_, ceil_div(in_, most));
    for (std::int64_t c = 0; c < in_; c += rows) {
      multiply_rows({.src = src + c,
                     .src_step = in_row_,
                     .diff = diff + o,
                     .diff_step = out_row_,
                     .rows = &row,
                     .row_count = 1,
                     .weights = sums + c * out_row_ + o,
                     .weights_step = out_row_,
                     .tail = std::min(lanes_, left - (vectors - 1) * lanes_),
                     .add = add},
                    tiles, vectors, std::min(rows, in_ - c));
    }
    o += vectors * lanes_;
  }
}

/// The weights of one input channel. `row` has room for them.
void StagedGradient::finish(const Memory& memory, std::int64_t group, std::int64_t in, float* row) const {
  const std::int64_t taps = tiling_.taps();
  float* const to = memory.diff_weights + (group * taps * in_ + in) * out_;
  tiling_.maps.points_to_weights({.in = memory.scratch + sums_at_ + in * out_row_,
                                  .in_strides = tiling_.point_strides(sums_point_),
                                  .out = accumulate_ ? row : to,
                                  .out_strides = tiling_.tap_strides(accumulate_ ? out_row_ : in_ * out_),
                                  .channels = out_});
  if (!accumulate_) return;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t o = 0; o < out_; ++o) to[tap * in_ * out_ + o] += row[tap * out_row_ + o];
  }
}

void StagedGradient::run_group(const Context& context, const Memory& memory, std::int64_t group) const {
  const std::int64_t count = tiling_.count();
  const std::int64_t panels = ceil_div(out_, out_panel);
  for (std::int64_t first = 0; first < count; first += stage_) {
    const std::int64_t tiles = std::min(stage_, count - first);
    run_team(threads_, [&](int thread, int team) {
      const std::int64_t begin = share(tiles, thread, team), end = share(tiles, thread + 1, team);
      if (begin < end) transform(memory, group, {.first = first + begin, .tiles = end - begin}, begin);
      poll(context, thread);
    });
    run_team(threads_, [&](int thread, int team) {
      const std::int64_t items = tiling_.points() * panels;
      for (std::int64_t i = share(items, thread, team); i < share(items, thread + 1, team); ++i) {
        const std::int64_t o = i % panels * out_panel;
        multiply(memory, {.point = i / panels, .out_first = o, .out_count = std::min(out_panel, out_ - o)}, tiles,
                 first > 0);
        poll(context, thread);
      }
    });
  }
  run_team(threads_, [&](int thread, int team) {
    float* const row = scratch_.of_thread(memory.scratch, rows_at_, thread);
    for (std::int64_t i = share(in_, thread, team); i < share(in_, thread + 1, team); ++i)
      finish(memory, group, i, row);
  });
}

void StagedGradient::execute(const Context& context, std::span<void* const> arguments, void* scratch) {
  using namespace at::conv_backward_weights;
  auto* memory = static_cast<float*>(scratch);
  if (bias_) bias_->execute(context, std::array{arguments[diff_dst], arguments[diff_bias]}, memory + bias_at_);
  std::fill_n(memory + zeros_at_, std::max(in_row_, out_row_), 0.0F);
  for (std::int64_t group = 0; group < groups_; ++group) {
    run_group(context,
              {.src = static_cast<const float*>(arguments[src]),
               .diff = static_cast<const float*>(arguments[diff_dst]),
               .diff_weights = static_cast<float*>(arguments[diff_weights]),
               .scratch = memory},
              group);
  }
}

}  // namespace

std::unique_ptr<Primitive> make_staged_gradient(const model::ConvTask& task, Kind kind, int threads) {
  return std::make_unique<StagedGradient>(task, kind, threads);
}

}  // namespace orthant::kernels::winograd
