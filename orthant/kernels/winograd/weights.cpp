#include "orthant/kernels/direct/tiles.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/machine.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/streaming.hpp"
#include "orthant/kernels/team.hpp"
#include "orthant/kernels/winograd/conv.hpp"
#include "orthant/kernels/winograd/scratch.hpp"
#include "orthant/kernels/winograd/tiling.hpp"

#include <hwy/cache_control.h>

#include <algorithm>

namespace orthant::kernels::winograd {
namespace {

/// A block of weights, and the tiles that are transformed for it at a time.
struct WeightBlock {
  std::int64_t in = 1, out = 1, tiles = 8;
};

/// What a multiply-add of vectors costs besides itself, about, in cycles: a transformed vector serves as
/// many as the other side has channels, and a sum that is read and written as many as there are tiles.
double extra_cost(const WeightBlock& block) {
  constexpr double transform = 3, sum = 3;
  return transform / static_cast<double>(block.in) + transform / static_cast<double>(block.out) +
         sum / static_cast<double>(block.tiles);
}

/// How many tiles stay in the cache with the sums of a block, of `point_floats` per point.
std::int64_t tiles_that_fit(const WeightBlock& block, std::int64_t point_floats, std::int64_t lanes) {
  return (point_floats - block.in * block.out) / (round_up(block.in, lanes) + block.out);
}

/// A large block or, if too few tiles fit beside its sums, the cheapest whose sums and tiles stay in the second-level
/// cache at all points.
WeightBlock choose_block(std::int64_t in, std::int64_t out, std::int64_t points, std::int64_t lanes) {
  constexpr std::int64_t widest = 128, most_tiles = 48, least_tiles = 8, enough_tiles = 12;
  constexpr std::int64_t longest_run = 16;  // tiles whose products are added up one by one: longer runs round worse
  const std::int64_t point_floats =
      second_level_cache_bytes() / 8 * 7 / static_cast<std::int64_t>(sizeof(float)) / points;
  WeightBlock large{.in = std::min<std::int64_t>(in, points == 64 ? 64 : widest),
                    .out = std::min(round_up(out, lanes), round_up(64, lanes))};
  large.tiles = std::min(tiles_that_fit(large, point_floats, lanes), most_tiles);
  if (large.tiles >= enough_tiles) return large;
  const std::int64_t panel = 2 * lanes;  // of the register tiles
  WeightBlock best{.in = std::min<std::int64_t>(in, 16), .out = std::min(round_up(out, lanes), panel), .tiles = 8};
  for (std::int64_t ins = ceil_div(in, widest); ceil_div(in, ins) >= std::min<std::int64_t>(in, 16); ++ins) {
    for (std::int64_t outs = ceil_div(out, widest); outs <= ceil_div(out, panel); ++outs) {
      WeightBlock block{.in = ceil_div(in, ins),
                        .out = std::min(round_up(ceil_div(out, outs), panel), round_up(out, lanes))};
      const std::int64_t fits = tiles_that_fit(block, point_floats, lanes);
      block.tiles = std::min(fits, longest_run);
      if (fits >= least_tiles && extra_cost(block) < extra_cost(best)) best = block;
    }
    if (ins >= in) break;
  }
  return best;
}

/// backward_weights: for a block of weights, transformed patches of src and tiles of diff_dst are multiplied point by
/// point and summed over all tiles, then transformed to taps once.
class WeightGradient final : public Primitive {
 public:
  WeightGradient(const model::ConvTask& task, Kind kind, int threads);
  [[nodiscard]] std::string name() const override { return name_of(kind_, tiling_) + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return scratch_.bytes(); }
  void execute(const Context& context, std::span<void* const> arguments, void* scratch) override;

 private:
  /// A block of weights and a part of the tiles: what one thread does at a time.
  struct Item {
    std::int64_t group, in_first, in_count, out_first, out_count;
    int part, parts;
    std::int64_t slot;  ///< that receives the sums; negative: diff_weights does
  };
  struct Thread {
    const float* src;
    const float* diff;
    float* weights;     ///< sums at the points: [point][in][out]
    float* in_points;   ///< [point][tile][in]
    float* out_points;  ///< [point][tile][out]
    const float* zeros;
  };

  [[nodiscard]] Item block_at(std::int64_t index) const;
  [[nodiscard]] Item item_at(std::int64_t index, int thread) const;
  void sum_tiles(const Thread& memory, const Item& item) const;
  void transform(const Thread& memory, const Item& item, const Block& block) const;
  void multiply(const Thread& memory, const Item& item, std::int64_t tiles) const;
  void finish(const Thread& memory, const Item& item, float* diff_weights, float* slots) const;
  void add_slots(const Item& block, std::int64_t tap, const float* slots, std::int64_t count,
                 float* diff_weights) const;

  Kind kind_;
  Tiling tiling_;
  int threads_;
  bool accumulate_;
  std::int64_t groups_, in_, out_;
  std::int64_t lanes_;
  int points_;
  std::int64_t in_block_, out_block_, in_blocks_, out_blocks_, block_tiles_;
  /// Each block is computed by one thread, except the last `split_` blocks, whose tiles are divided among several.
  std::int64_t whole_, split_;
  int parts_ = 1;
  std::int64_t slot_floats_;
  bool stream_;                                                 ///< diff_weights
  std::int64_t in_row_, in_point_, out_point_, weights_point_;  ///< floats from tile to tile, and of one point
  direct::WeightTiles tiles_;
  std::unique_ptr<Primitive> bias_;  ///< sums diff_dst; null without a bias
  Scratch scratch_;
  std::int64_t bias_at_ = 0;
  std::int64_t weights_at_, in_points_at_, out_points_at_, zeros_at_, slots_at_;
};

WeightGradient::WeightGradient(const model::ConvTask& task, Kind kind, int threads)
    : kind_(kind),
      tiling_(forward_tiling(task, tile_size(kind))),
      threads_(threads),
      accumulate_(task.accumulate),
      groups_(task.groups),
      in_(task.src.extents.c / groups_),
      out_(task.dst.extents.c / groups_),
      points_(tiling_.points()),
      tiles_(direct::weight_tiles()) {
  lanes_ = tiles_.lanes;
  const WeightBlock block = choose_block(in_, out_, points_, lanes_);
  in_block_ = block.in;
  out_block_ = block.out;
  block_tiles_ = block.tiles;
  in_blocks_ = ceil_div(in_, in_block_);
  out_blocks_ = ceil_div(out_, out_block_);
  in_row_ = round_up(in_block_, lanes_);
  in_point_ = block_tiles_ * in_row_ + skew;
  out_point_ = block_tiles_ * out_block_ + skew;
  weights_point_ = in_block_ * out_block_ + skew;
  const std::int64_t blocks = groups_ * in_blocks_ * out_blocks_;
  split_ = blocks < std::int64_t{8} * threads ? blocks % threads : 0;
  while (split_ * parts_ % threads != 0 && split_ * parts_ < std::int64_t{3} * threads &&
         parts_ * block_tiles_ < tiling_.count())
    ++parts_;
  if (parts_ == 1) split_ = 0;
  whole_ = blocks - split_;
  slot_floats_ = tiling_.taps() * in_block_ * out_block_;
  stream_ = writes_around_cache(groups_ * tiling_.taps() * in_ * out_, out_, lanes_);
  weights_at_ = scratch_.per_thread(points_ * weights_point_, threads);
  in_points_at_ = scratch_.per_thread(points_ * in_point_, threads);
  out_points_at_ = scratch_.per_thread(points_ * out_point_, threads);
  zeros_at_ = scratch_.shared(round_up(std::max(in_, out_), lanes_));
  if (task.bias) {
    bias_ = elementwise::make_bias_gradient({.accumulate = task.accumulate, .dst = task.dst}, threads);
    bias_at_ = scratch_.shared(ceil_div(bias_->scratch_bytes(), sizeof(float)));
  }
  slots_at_ = scratch_.shared(slot_floats_ * std::max(split_ * parts_, std::int64_t{accumulate_ ? threads : 0}));
}

WeightGradient::Item WeightGradient::block_at(std::int64_t index) const {
  const std::int64_t out_first = index % out_blocks_ * out_block_;
  index /= out_blocks_;
  const std::int64_t in_first = index % in_blocks_ * in_block_;
  return {.group = index / in_blocks_,
          .in_first = in_first,
          .in_count = std::min(in_block_, in_ - in_first),
          .out_first = out_first,
          .out_count = std::min(out_block_, out_ - out_first),
          .part = 0,
          .parts = 1,
          .slot = -1};
}

/// Whole blocks come before parts of blocks. A sum that is to be added to another one is written to a slot first.
WeightGradient::Item WeightGradient::item_at(std::int64_t index, int thread) const {
  if (index < whole_) {
    Item item = block_at(index);
    if (accumulate_) item.slot = thread;
    return item;
  }
  const std::int64_t slot = index - whole_;
  Item item = block_at(whole_ + slot / parts_);
  item.part = static_cast<int>(slot % parts_);
  item.parts = parts_;
  item.slot = slot;
  return item;
}

void WeightGradient::transform(const Thread& memory, const Item& item, const Block& block) const {
  src_to_points(tiling_, block, memory.src + item.group * in_ + item.in_first, memory.zeros,
                {.memory = memory.in_points, .point_step = in_point_, .tile_step = in_row_, .channels = item.in_count});
  diff_to_points(
      tiling_, block, memory.diff + item.group * out_ + item.out_first, memory.zeros,
      {.memory = memory.out_points, .point_step = out_point_, .tile_step = out_block_, .channels = item.out_count});
}

void WeightGradient::multiply(const Thread& memory, const Item& item, std::int64_t tiles) const {
  const std::int64_t vectors_all = ceil_div(item.out_count, lanes_);
  const direct::RowPair row{};
  for (int p = 0; p < points_; ++p) {
    for (std::int64_t v = 0; v < vectors_all;) {
      const std::int64_t vectors = std::min<std::int64_t>(vectors_all - v, tiles_.rows[3] >= 6 ? 4 : 2);
      const std::int64_t most = tiles_.rows[static_cast<std::size_t>(vectors - 1)];
      const std::int64_t rows = ceil_div(item.in_count, ceil_div(item.in_count, most));
      float* const sums = memory.weights + p * weights_point_ + v * lanes_;
      for (std::int64_t c = 0; c < item.in_count; c += rows) {
        const std::int64_t count = std::min(rows, item.in_count - c);
        tiles_.outer[static_cast<std::size_t>(vectors - 1)][static_cast<std::size_t>(count - 1)](
            {.src = memory.in_points + p * in_point_ + c,
             .src_step = in_row_,
             .diff = memory.out_points + p * out_point_ + v * lanes_,
             .diff_step = out_block_,
             .rows = &row,
             .row_count = 1,
             .pixels = tiles,
             .weights = sums + c * out_block_,
             .weights_step = out_block_,
             .tail = std::min(lanes_, item.out_count - (v + vectors - 1) * lanes_),
             .fetch_src = {.from = sums + (c + rows) * out_block_, .step = line_floats}});
      }
      v += vectors;
    }
  }
}

void WeightGradient::sum_tiles(const Thread& memory, const Item& item) const {
  std::fill_n(memory.weights, points_ * weights_point_, 0.0F);
  const std::int64_t end = share(tiling_.count(), item.part + 1, item.parts);
  for (std::int64_t first = share(tiling_.count(), item.part, item.parts); first < end; first += block_tiles_) {
    const Block block{.first = first, .tiles = std::min(block_tiles_, end - first)};
    transform(memory, item, block);
    multiply(memory, item, block.tiles);
  }
}

void WeightGradient::finish(const Thread& memory, const Item& item, float* diff_weights, float* slots) const {
  const bool in_place = item.slot < 0;
  float* const target = diff_weights + (item.group * tiling_.taps() * in_ + item.in_first) * out_ + item.out_first;
  tiling_.maps.points_to_weights({.in = memory.weights,
                                  .in_strides = tiling_.point_strides(weights_point_),
                                  .out = in_place ? target : slots + item.slot * slot_floats_,
                                  .out_strides = tiling_.tap_strides(in_place ? in_ * out_ : in_block_ * out_block_),
                                  .channels = item.out_count,
                                  .boxes = item.in_count,
                                  .in_next = out_block_,
                                  .out_next = in_place ? out_ : out_block_,
                                  .stream = in_place && stream_ && is_aligned(target)});
}

/// One tap of a block: its diff_weights become, or gain, the sum of `count` slots.
void WeightGradient::add_slots(const Item& block, std::int64_t tap, const float* slots, std::int64_t count,
                               float* diff_weights) const {
  for (std::int64_t i = 0; i < block.in_count; ++i) {
    float* const to =
        diff_weights + ((block.group * tiling_.taps() + tap) * in_ + block.in_first + i) * out_ + block.out_first;
    const float* const from = slots + (tap * in_block_ + i) * out_block_;
    for (std::int64_t o = 0; o < block.out_count; ++o) {
      float sum = accumulate_ ? to[o] : 0;
      for (std::int64_t slot = 0; slot < count; ++slot) sum += from[slot * slot_floats_ + o];
      to[o] = sum;
    }
  }
}

void WeightGradient::execute(const Context& context, std::span<void* const> arguments, void* scratch) {
  auto* memory = static_cast<float*>(scratch);
  if (bias_)
    bias_->execute(
        context,
        std::array{arguments[at::conv_backward_weights::diff_dst], arguments[at::conv_backward_weights::diff_bias]},
        memory + bias_at_);
  auto* diff_weights = static_cast<float*>(arguments[at::conv_backward_weights::diff_weights]);
  float* const slots = memory + slots_at_;
  std::fill_n(memory + zeros_at_, round_up(std::max(in_, out_), lanes_), 0.0F);
  const auto run_items = [&](std::int64_t first, std::int64_t count) {
    run_team(threads_, [&](int thread, int team) {
      const Thread own{.src = static_cast<const float*>(arguments[at::conv_backward_weights::src]),
                       .diff = static_cast<const float*>(arguments[at::conv_backward_weights::diff_dst]),
                       .weights = scratch_.of_thread(memory, weights_at_, thread),
                       .in_points = scratch_.of_thread(memory, in_points_at_, thread),
                       .out_points = scratch_.of_thread(memory, out_points_at_, thread),
                       .zeros = memory + zeros_at_};
      for (std::int64_t i = share(count, thread, team); i < share(count, thread + 1, team); ++i) {
        const Item item = item_at(first + i, thread);
        poll(context, thread);
        sum_tiles(own, item);
        finish(own, item, diff_weights, slots);
        if (item.slot < 0 || item.parts > 1) continue;
        for (std::int64_t tap = 0; tap < tiling_.taps(); ++tap)
          add_slots(item, tap, slots + item.slot * slot_floats_, 1, diff_weights);
      }
      if (stream_) hwy::FlushStream();
    });
  };
  if (whole_ > 0) run_items(0, whole_);
  if (split_ == 0) return;
  run_items(whole_, split_ * parts_);
  run_team(threads_, [&](int thread, int team) {
    const std::int64_t count = split_ * tiling_.taps();
    for (std::int64_t i = share(count, thread, team); i < share(count, thread + 1, team); ++i) {
      const std::int64_t block = i / tiling_.taps();
      add_slots(block_at(whole_ + block), i % tiling_.taps(), slots + block * parts_ * slot_floats_, parts_,
                diff_weights);
    }
  });
}

}  // namespace

std::unique_ptr<Primitive> make_weight_gradient(const model::ConvTask& task, Kind kind, int threads) {
  return std::make_unique<WeightGradient>(task, kind, threads);
}

}  // namespace orthant::kernels::winograd
