#include "orthant/kernels/correlation.hpp"
#include "orthant/kernels/direct/tiles.hpp"
#include "orthant/kernels/machine.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"
#include "orthant/kernels/winograd/conv.hpp"
#include "orthant/kernels/winograd/scratch.hpp"
#include "orthant/kernels/winograd/tiling.hpp"
#include "orthant/kernels/winograd/transformed_weights.hpp"

#include <algorithm>

namespace orthant::kernels::winograd {
namespace {

/// How tiles are cut so that a block stays in the second-level cache.
struct Blocking {
  std::int64_t tiles = 1;   ///< per block
  std::int64_t blocks = 1;  ///< of tiles
};

/// Forward, and backward_data as the forward of its mirror image: transform a block of tiles, multiply point by point,
/// transform back, all in cache.
class Correlation final : public Primitive {
 public:
  Correlation(const model::ConvTask& task, Kind kind, int threads);
  [[nodiscard]] std::string name() const override { return name_of(kind_, tiling_) + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return scratch_.bytes(); }
  void execute(const Context& context, std::span<void* const> arguments, void* scratch) override;

 private:
  struct Thread;
  struct Item;
  struct BlockedTiling;
  const float* block_weights(const float* weights, const Outputs& block, float* memory) const;
  const BlockedTiling& add_part(const SubTiling& added);
  void run(const Thread& memory, const Item& item) const;
  void multiply(const Thread& memory, const Item& item, std::int64_t in_first) const;
  void multiply_panel(direct::TileCall call, std::int64_t tiles, std::int64_t vectors, const float* next) const;
  [[nodiscard]] Item item_at(std::int64_t index, const Outputs& outputs) const;

  Kind kind_;
  Tiling tiling_;  ///< of the whole
  model::Pass pass_;
  bool bias_;
  float slope_;
  int threads_;
  std::int64_t groups_, in_, out_;  ///< channels per group
  direct::Tiles tiles_;
  TransformedWeights weights_;
  bool prepared_;  ///< the weights argument is transformed
  std::int64_t lanes_, panel_;
  std::int64_t most_in_, most_out_;  ///< channels at a time
  std::int64_t in_row_;              ///< floats from tile to tile
  std::vector<BlockedTiling> parts_;
  std::int64_t blocks_ = 0;  ///< of all parts
  bool fetches_;             ///< prefetch weights: they do not stay in the second-level cache
  Scratch scratch_;
  std::int64_t weights_at_, transposed_at_, in_points_at_, out_points_at_, zeros_at_, trash_at_;
};

/// The memory of one thread.
struct Correlation::Thread {
  const float* src;
  const float* bias;
  float* dst;
  const float* weights;  ///< transformed
  float* in_points;      ///< [point][tile][in channel]
  float* out_points;     ///< [point][tile][out channel]
  const float* zeros;
  float* trash;
};

struct Correlation::BlockedTiling {
  Tiling tiling;
  std::vector<int> points;  ///< of the whole
  Blocking blocking;
  std::int64_t in_point = 0, out_point = 0;  ///< floats of one point of a block
};

/// A block of tiles of one group.
struct Correlation::Item {
  const BlockedTiling& part;
  std::int64_t group = 0;
  Block block{};
  Outputs outputs{};
};

/// How large blocks of tiles may be, in rows of register tiles: what fits into so many bytes, but not fewer or more.
struct BlockLimits {
  std::int64_t bytes = 0, least_rows = 1, most_rows = 8;
  int threads = 1;
};

/// Blocks stay in the second-level cache. Those of stages go through the third, and weights are read once for more.
BlockLimits block_limits(Kind kind, int threads) {
  if (kind != Kind::staged) return {.bytes = second_level_cache_bytes() / 8 * 5, .threads = threads};
  return {.bytes = third_level_cache_bytes() / (4 * threads), .least_rows = 4, .most_rows = 64, .threads = threads};
}

/// Each point of a tile has `channels` floats, input and output together; a register tile spans `rows` tiles.
Blocking choose_blocking(const Tiling& tiling, std::int64_t channels, std::int64_t rows, const BlockLimits& limits) {
  const std::int64_t fits = limits.bytes / static_cast<std::int64_t>(sizeof(float)) / (tiling.points() * channels);
  const std::int64_t most =
      std::clamp<std::int64_t>(fits / rows * rows, limits.least_rows * rows, limits.most_rows * rows);
  const std::int64_t threads = limits.threads;
  // Enough blocks for all threads, as equal as can be.
  const std::int64_t count = tiling.count();
  std::int64_t blocks = ceil_div(count, most);
  while (blocks % threads != 0 && blocks < 8 * threads && blocks < count) ++blocks;
  Blocking blocking{.tiles = ceil_div(count, blocks)};
  if (blocking.tiles > 2 * rows) blocking.tiles = std::min(round_up(blocking.tiles, rows), most);
  blocking.blocks = ceil_div(count, blocking.tiles);
  return blocking;
}

Correlation::Correlation(const model::ConvTask& task, Kind kind, int threads)
    : kind_(kind),
      tiling_(correlation_tiling(task, tile_size(kind))),
      pass_(task.pass),
      bias_(task.bias && pass_ == model::Pass::forward),
      slope_(slope_of(task.activation)),
      threads_(threads),
      groups_(task.groups),
      in_(tiling_.src.extents.c / groups_),
      out_(tiling_.dst.extents.c / groups_),
      tiles_(direct::correlation_tiles()),
      weights_(task, kind, tiling_),
      prepared_(task.prepared_bytes > 0),
      lanes_(weights_.lanes()),
      panel_(weights_.panel()),
      most_in_(weights_.most_in()),
      most_out_(weights_.most_out()),
      in_row_(round_up(most_in_, lanes_)) {
  std::int64_t in_floats = 0, out_floats = 0;
  for (const SubTiling& part : cut_off_planes(tiling_)) {
    const BlockedTiling& added = add_part(part);
    in_floats = std::max(in_floats, added.tiling.points() * added.in_point);
    out_floats = std::max(out_floats, added.tiling.points() * added.out_point);
  }
  fetches_ = weights_.block_floats() * static_cast<std::int64_t>(sizeof(float)) > second_level_cache_bytes() / 4;
  weights_at_ = scratch_.shared(prepared_ ? 0 : weights_.block_floats());
  transposed_at_ = scratch_.per_thread(prepared_ ? 0 : weights_.thread_floats(), threads);
  in_points_at_ = scratch_.per_thread(in_floats, threads);
  out_points_at_ = scratch_.per_thread(out_floats, threads);
  zeros_at_ = scratch_.shared(round_up(in_, lanes_));
  trash_at_ = scratch_.per_thread(round_up(out_, lanes_), threads);
}

const Correlation::BlockedTiling& Correlation::add_part(const SubTiling& added) {
  const int rows = tiles_.rows[static_cast<std::size_t>(std::min(panel_, weights_.padded_out()) / lanes_ - 1)];
  BlockedTiling part{.tiling = added.tiling, .points = added.points};
  part.blocking = choose_blocking(part.tiling, most_in_ + most_out_, rows, block_limits(kind_, threads_));
  part.in_point = part.blocking.tiles * in_row_ + skew;
  part.out_point = part.blocking.tiles * most_out_ + skew;
  blocks_ += part.blocking.blocks;
  return parts_.emplace_back(std::move(part));
}

/// One panel of one point, all tiles of the block. `next` is the panel that comes after it.
void Correlation::multiply_panel(direct::TileCall call, std::int64_t tiles, std::int64_t vectors,
                                 const float* next) const {
  const auto& functions = tiles_.correlation[static_cast<std::size_t>(vectors - 1)];
  const std::int64_t rows = tiles_.rows[static_cast<std::size_t>(vectors - 1)];
  // Panels come one after the other from the third-level cache, so the next one is prefetched gradually.
  if (fetches_) {
    const std::int64_t slots = ceil_div(tiles, rows) * call.runs->steps;
    const std::int64_t panel_lines = call.runs->steps * vectors * lanes_ / line_floats;
    call.fetch = {.from = next, .step = line_floats * ceil_div(panel_lines, slots)};
  }
  for (std::int64_t t = 0; t < tiles; t += rows) {
    functions[static_cast<std::size_t>(std::min(rows, tiles - t) - 1)](call);
    call.src += rows * call.src_step;
    call.dst += rows * call.dst_step;
    call.fetch.from += call.runs->steps * call.fetch.step;
  }
}

void Correlation::multiply(const Thread& memory, const Item& item, std::int64_t in_first) const {
  const direct::Run run{.steps = std::min(most_in_, in_ - in_first)};
  const auto width_at = [&](std::int64_t o) { return std::min(panel_, item.outputs.count - o); };
  const BlockedTiling& part = item.part;
  const auto panel_at = [&](std::size_t p, std::int64_t o) {
    return memory.weights + weights_.panel_offset(item.group, part.points[p], item.outputs, o) + in_first * width_at(o);
  };
  for (std::size_t p = 0; p < part.points.size(); ++p) {
    const auto index = static_cast<std::int64_t>(p);
    const std::size_t next = std::min(p + 1, part.points.size() - 1);
    for (std::int64_t o = 0; o < item.outputs.count; o += panel_) {
      const bool last = o + panel_ >= item.outputs.count;
      const direct::TileCall call{.src = memory.in_points + index * part.in_point,
                                  .src_step = in_row_,
                                  .runs = &run,
                                  .run_count = 1,
                                  .weights = panel_at(p, o),
                                  .dst = memory.out_points + index * part.out_point + o,
                                  .dst_step = most_out_,
                                  .tail = lanes_,
                                  .first = in_first == 0,
                                  .last = false};
      multiply_panel(call, item.block.tiles, width_at(o) / lanes_, last ? panel_at(next, 0) : panel_at(p, o + panel_));
    }
  }
}

void Correlation::run(const Thread& memory, const Item& item) const {
  const BlockedTiling& part = item.part;
  for (std::int64_t in_first = 0; in_first < in_; in_first += most_in_) {
    src_to_points(part.tiling, item.block, memory.src + item.group * in_ + in_first, memory.zeros,
                  {.memory = memory.in_points,
                   .point_step = part.in_point,
                   .tile_step = in_row_,
                   .channels = std::min(most_in_, in_ - in_first)});
    multiply(memory, item, in_first);
  }
  const std::int64_t channel = item.group * out_ + item.outputs.first;
  points_to_dst(part.tiling, item.block,
                {.memory = memory.out_points,
                 .point_step = part.out_point,
                 .tile_step = most_out_,
                 .channels = std::min(item.outputs.count, out_ - item.outputs.first)},
                memory.dst + channel,
                {.bias = bias_ ? memory.bias + channel : nullptr, .slope = slope_, .outside = memory.trash});
}

Correlation::Item Correlation::item_at(std::int64_t index, const Outputs& outputs) const {
  const std::int64_t group = index / blocks_;
  std::int64_t block = index % blocks_;
  auto part = parts_.begin();
  for (; block >= part->blocking.blocks; ++part) block -= part->blocking.blocks;
  const std::int64_t first = block * part->blocking.tiles;
  return {.part = *part,
          .group = group,
          .block = {.first = first, .tiles = std::min(part->blocking.tiles, part->tiling.count() - first)},
          .outputs = outputs};
}

/// The transformed weights of a block: prepared ones, or those that are transformed to scratch memory here.
const float* Correlation::block_weights(const float* weights, const Outputs& block, float* memory) const {
  if (prepared_) return weights + weights_.block_offset(block);
  run_team(threads_, [&](int thread, int team) {
    float* own = scratch_.of_thread(memory, transposed_at_, thread);
    weights_.transform(weights, block, memory + weights_at_, own, thread, team);
  });
  return memory + weights_at_;
}

void Correlation::execute(const Context& context, std::span<void* const> arguments, void* scratch) {
  const CorrelationArguments given = correlation_arguments(pass_, arguments);
  auto* memory = static_cast<float*>(scratch);
  std::fill_n(memory + zeros_at_, round_up(in_, lanes_), 0.0F);
  for (std::int64_t first = 0; first < weights_.padded_out(); first += most_out_) {
    const Outputs outputs = weights_.block_at(first);
    const float* weights = block_weights(given.weights, outputs, memory);
    run_team(threads_, [&](int thread, int team) {
      const Thread own{.src = given.src,
                       .bias = given.bias,
                       .dst = given.dst,
                       .weights = weights,
                       .in_points = scratch_.of_thread(memory, in_points_at_, thread),
                       .out_points = scratch_.of_thread(memory, out_points_at_, thread),
                       .zeros = memory + zeros_at_,
                       .trash = scratch_.of_thread(memory, trash_at_, thread)};
      const std::int64_t items = groups_ * blocks_;
      for (std::int64_t index = share(items, thread, team); index < share(items, thread + 1, team); ++index) {
        run(own, item_at(index, outputs));
        poll(context, thread);
      }
    });
  }
}

}  // namespace

std::unique_ptr<Primitive> make_correlation(const model::ConvTask& task, Kind kind, int threads) {
  return std::make_unique<Correlation>(task, kind, threads);
}

}  // namespace orthant::kernels::winograd
