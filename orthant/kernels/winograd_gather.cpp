#include "orthant/kernels/direct_tiles.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"
#include "orthant/kernels/winograd.hpp"
#include "orthant/kernels/winograd_scratch.hpp"
#include "orthant/kernels/winograd_transforms.hpp"

#include <algorithm>

namespace orthant::kernels::winograd {
namespace {

/// How channels are cut so that a block of tiles stays in the second-level cache.
struct Blocking {
  std::int64_t tiles = 1;        ///< per block
  std::int64_t in = 1, out = 1;  ///< channels at a time; out is a multiple of the panel
  std::int64_t blocks = 1;       ///< of tiles
  std::int64_t out_blocks = 1;
};

/// Forward, and backward_data as the forward of its mirror image: transform a block of tiles, multiply point by point,
/// transform back, all in cache.
class Gather final : public Primitive {
 public:
  Gather(const model::ConvTask& task, int threads);
  [[nodiscard]] std::string name() const override { return "orthant:winograd:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return scratch_.bytes(); }
  void execute(const Context& context, std::span<void* const> arguments, void* scratch) override;

 private:
  struct Thread;
  void transform_weights(const float* weights, float* transformed, int thread, int team) const;
  void transpose(const float* weights, float* transposed, int thread, int team) const;
  void run_block(const Thread& memory, std::int64_t group, std::int64_t block, std::int64_t out_block) const;
  void multiply(const Thread& memory, std::int64_t group, std::int64_t tiles, std::int64_t in_first,
                std::int64_t out_first) const;
  [[nodiscard]] std::int64_t panel_offset(std::int64_t group, int point, std::int64_t out_first) const;

  Tiling tiling_;
  bool backward_;
  bool bias_;
  float slope_;
  int threads_;
  std::int64_t groups_, in_, out_;  ///< channels per group
  std::int64_t lanes_, panel_, padded_out_;
  int points_;
  Blocking blocking_;
  Transforms transforms_;
  direct::Tiles tiles_;
  Scratch scratch_;
  std::int64_t weights_at_, transposed_at_, in_points_at_, out_points_at_, cells_at_, zeros_at_, trash_at_;
};

/// The memory of one thread.
struct Gather::Thread {
  const float* src;
  const float* bias;
  float* dst;
  const float* weights;  ///< transformed
  float* in_points;      ///< [point][tile][in channel]
  float* out_points;     ///< [point][tile][out channel]
  const float** cells;   ///< [tile][point]
  const float* zeros;
  float* trash;
};

constexpr std::int64_t skew = 16;  // floats between points, so that they do not fall into one cache set
constexpr std::int64_t cache_floats = (std::int64_t{1300} << 10) / 4;

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

Blocking choose_blocking(const Tiling& tiling, std::int64_t in, std::int64_t out, std::int64_t panel, std::int64_t rows,
                         std::int64_t threads) {
  Blocking blocking;
  blocking.in = std::min<std::int64_t>(in, 128);
  blocking.out = std::min<std::int64_t>(round_up(out, panel), round_up(128, panel));
  const std::int64_t fits = cache_floats / (tiling.points() * (blocking.in + blocking.out));
  const std::int64_t most = std::clamp<std::int64_t>(fits / rows * rows, rows, 8 * rows);
  blocking.out_blocks = (out + blocking.out - 1) / blocking.out;
  // Enough blocks for all threads, as equal as can be.
  const std::int64_t count = tiling.count();
  std::int64_t blocks = (count + most - 1) / most;
  while (blocks * blocking.out_blocks % threads != 0 && blocks < 8 * threads && blocks < count) ++blocks;
  blocking.tiles = (count + blocks - 1) / blocks;
  if (blocking.tiles > 2 * rows) blocking.tiles = std::min(round_up(blocking.tiles, rows), most);
  blocking.blocks = (count + blocking.tiles - 1) / blocking.tiles;
  return blocking;
}

Gather::Gather(const model::ConvTask& task, int threads)
    : tiling_(task.pass == model::Pass::forward ? forward_tiling(task) : backward_data_tiling(task)),
      backward_(task.pass == model::Pass::backward_data),
      bias_(task.bias && !backward_),
      slope_(task.activation.kind == model::ActivationKind::identity ? 1.0F
             : task.activation.kind == model::ActivationKind::relu   ? 0.0F
                                                                     : static_cast<float>(task.activation.slope)),
      threads_(threads),
      groups_(task.groups),
      in_(tiling_.src.extents.c / groups_),
      out_(tiling_.dst.extents.c / groups_),
      points_(tiling_.points()),
      transforms_(transforms(tiling_.three[0], tiling_.three[1], tiling_.three[2])),
      tiles_(direct::gather_tiles()) {
  lanes_ = tiles_.lanes;
  panel_ = lanes_ * (tiles_.rows[3] >= 6 ? 4 : 2);
  padded_out_ = round_up(out_, lanes_);
  const int rows = tiles_.rows[static_cast<std::size_t>(std::min(panel_, padded_out_) / lanes_ - 1)];
  blocking_ = choose_blocking(tiling_, in_, out_, panel_, rows, threads);
  weights_at_ = scratch_.shared(groups_ * points_ * in_ * padded_out_);
  transposed_at_ = scratch_.shared(backward_ ? groups_ * tiling_.taps() * in_ * out_ : 0);
  in_points_at_ = scratch_.per_thread(points_ * (blocking_.tiles * round_up(blocking_.in, lanes_) + skew), threads);
  out_points_at_ = scratch_.per_thread(points_ * (blocking_.tiles * blocking_.out + skew), threads);
  cells_at_ = scratch_.per_thread(blocking_.tiles * points_ * 2, threads);
  zeros_at_ = scratch_.shared(round_up(in_, lanes_));
  trash_at_ = scratch_.per_thread(round_up(out_, lanes_), threads);
}

/// Where the panel of outputs from `out_first` on begins: [group][point][panel][in][lanes of the panel].
std::int64_t Gather::panel_offset(std::int64_t group, int point, std::int64_t out_first) const {
  return ((group * points_ + point) * padded_out_ + out_first) * in_;
}

/// [taps][I][O] to [taps][O][I] of every group, so that backward's reduction channels come first.
void Gather::transpose(const float* weights, float* transposed, int thread, int team) const {
  constexpr std::int64_t tile = 16;
  const std::int64_t planes = groups_ * tiling_.taps();
  for (std::int64_t plane = share(planes, thread, team); plane < share(planes, thread + 1, team); ++plane) {
    const float* from = weights + plane * in_ * out_;
    float* to = transposed + plane * in_ * out_;
    for (std::int64_t i0 = 0; i0 < out_; i0 += tile) {
      for (std::int64_t o0 = 0; o0 < in_; o0 += tile) {
        for (std::int64_t o = o0; o < std::min(o0 + tile, in_); ++o) {
          for (std::int64_t i = i0; i < std::min(i0 + tile, out_); ++i) to[o * out_ + i] = from[i * in_ + o];
        }
      }
    }
  }
}

/// `weights` is [group][tap][in][out] of the convolution to run; taps are mirrored for backward_data.
void Gather::transform_weights(const float* weights, float* transformed, int thread, int team) const {
  const int taps = tiling_.taps();
  std::array<const float*, 27> in{};
  std::array<float*, max_points> out{};
  const std::int64_t total = groups_ * in_;
  for (std::int64_t item = share(total, thread, team); item < share(total, thread + 1, team); ++item) {
    const std::int64_t group = item / in_;
    const std::int64_t c = item % in_;
    for (int tap = 0; tap < taps; ++tap) {
      const std::int64_t row = (group * taps + (backward_ ? taps - 1 - tap : tap)) * in_ + c;
      in[static_cast<std::size_t>(tap)] = weights + row * out_;
    }
    for (std::int64_t first = 0; first < out_; first += panel_) {
      const std::int64_t width = std::min(panel_, padded_out_ - first);
      for (int p = 0; p < points_; ++p) {
        out[static_cast<std::size_t>(p)] = transformed + panel_offset(group, p, first) + c * width;
      }
      transforms_.weights_to_points(
          {.in = in.data(), .in_offset = first, .out = out.data(), .channels = std::min(panel_, out_ - first)});
    }
  }
}

void Gather::multiply(const Thread& memory, std::int64_t group, std::int64_t tiles, std::int64_t in_first,
                      std::int64_t out_first) const {
  const std::int64_t in_count = std::min(blocking_.in, in_ - in_first);
  const std::int64_t out_count = std::min(blocking_.out, padded_out_ - out_first);
  const std::int64_t in_row = round_up(blocking_.in, lanes_);
  const direct::Run run{};
  for (int p = 0; p < points_; ++p) {
    const float* src = memory.in_points + p * (blocking_.tiles * in_row + skew);
    float* dst = memory.out_points + p * (blocking_.tiles * blocking_.out + skew);
    for (std::int64_t o = 0; o < out_count; o += panel_) {
      const std::int64_t width = std::min(panel_, padded_out_ - out_first - o);
      const auto vectors = static_cast<std::size_t>(width / lanes_ - 1);
      const std::int64_t rows = tiles_.rows[vectors];
      for (std::int64_t t = 0; t < tiles; t += rows) {
        const std::int64_t count = std::min(rows, tiles - t);
        tiles_.gather[vectors][static_cast<std::size_t>(count - 1)](
            {.src = src + t * in_row,
             .src_step = in_row,
             .runs = &run,
             .run_count = 1,
             .run_length = in_count,
             .weights = memory.weights + panel_offset(group, p, out_first + o) + in_first * width,
             .dst = dst + t * blocking_.out + o,
             .dst_step = blocking_.out,
             .tail = lanes_,
             .first = in_first == 0,
             .last = false});
      }
    }
  }
}

void Gather::run_block(const Thread& memory, std::int64_t group, std::int64_t block, std::int64_t out_block) const {
  const std::int64_t first = block * blocking_.tiles;
  const std::int64_t tiles = std::min(blocking_.tiles, tiling_.count() - first);
  const std::int64_t in_row = round_up(blocking_.in, lanes_);
  const std::int64_t out_first = out_block * blocking_.out;
  std::array<float*, max_points> in_points{};
  std::array<const float*, max_points> out_points{};
  for (int p = 0; p < points_; ++p) {
    in_points[static_cast<std::size_t>(p)] = memory.in_points + p * (blocking_.tiles * in_row + skew);
    out_points[static_cast<std::size_t>(p)] = memory.out_points + p * (blocking_.tiles * blocking_.out + skew);
  }
  for (std::int64_t t = 0; t < tiles; ++t) {
    src_cells(tiling_, first + t, memory.src + group * in_, memory.zeros, memory.cells + t * points_);
  }
  for (std::int64_t in_first = 0; in_first < in_; in_first += blocking_.in) {
    for (std::int64_t t = 0; t < tiles; ++t) {
      transforms_.src_to_points({.in = memory.cells + t * points_,
                                 .in_offset = in_first,
                                 .out = in_points.data(),
                                 .out_offset = t * in_row,
                                 .channels = std::min(blocking_.in, in_ - in_first)});
    }
    multiply(memory, group, tiles, in_first, out_first);
  }
  std::array<float*, 8> cells{};
  for (std::int64_t t = 0; t < tiles; ++t) {
    dst_cells(tiling_, first + t, memory.dst + group * out_ + out_first, memory.trash, cells.data());
    transforms_.points_to_dst({.in = out_points.data(),
                               .in_offset = t * blocking_.out,
                               .out = cells.data(),
                               .channels = std::min(blocking_.out, out_ - out_first),
                               .bias = bias_ ? memory.bias + group * out_ + out_first : nullptr,
                               .slope = slope_});
  }
}

void Gather::execute(const Context&, std::span<void* const> arguments, void* scratch) {
  auto* memory = static_cast<float*>(scratch);
  const auto* weights = static_cast<const float*>(arguments[1]);
  std::fill_n(memory + zeros_at_, round_up(in_, lanes_), 0.0F);
  if (backward_) {
    run_team(threads_, [&](int thread, int team) { transpose(weights, memory + transposed_at_, thread, team); });
    weights = memory + transposed_at_;
  }
  run_team(threads_, [&](int thread, int team) { transform_weights(weights, memory + weights_at_, thread, team); });
  run_team(threads_, [&](int thread, int team) {
    const Thread own{.src = static_cast<const float*>(arguments[0]),
                     .bias = bias_ ? static_cast<const float*>(arguments[2]) : nullptr,
                     .dst = static_cast<float*>(arguments[backward_ ? 2 : 3]),
                     .weights = memory + weights_at_,
                     .in_points = scratch_.of_thread(memory, in_points_at_, thread),
                     .out_points = scratch_.of_thread(memory, out_points_at_, thread),
                     .cells = reinterpret_cast<const float**>(scratch_.of_thread(memory, cells_at_, thread)),
                     .zeros = memory + zeros_at_,
                     .trash = scratch_.of_thread(memory, trash_at_, thread)};
    const std::int64_t items = groups_ * blocking_.blocks * blocking_.out_blocks;
    for (std::int64_t item = share(items, thread, team); item < share(items, thread + 1, team); ++item) {
      const std::int64_t tile_block = item / blocking_.out_blocks;
      run_block(own, tile_block / blocking_.blocks, tile_block % blocking_.blocks, item % blocking_.out_blocks);
    }
  });
}

}  // namespace

std::unique_ptr<Primitive> make_gather(const model::ConvTask& task, int threads) {
  return std::make_unique<Gather>(task, threads);
}

}  // namespace orthant::kernels::winograd
