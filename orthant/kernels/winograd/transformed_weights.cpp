#include "orthant/kernels/winograd/transformed_weights.hpp"

#include "orthant/base/format.hpp"
#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/direct/tiles.hpp"
#include "orthant/kernels/matrix/tiles.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"
#include "orthant/kernels/winograd/conv.hpp"
#include "orthant/kernels/winograd/scratch.hpp"

#include <algorithm>

namespace orthant::kernels::winograd {
namespace {

constexpr std::int64_t transposed_rows = 64;  // reduction channels that are transposed at a time

/// Input and output channels whose points are in cache together.
std::int64_t most_channels_at_a_time(Kind kind, int points) {
  if (kind == Kind::staged) return 512;
  return points > 36 ? 128 : 256;
}

/// Transforms all blocks of the weights, for convolutions that come after it.
class PrepareWeights final : public Primitive {
 public:
  PrepareWeights(const model::ConvTask& task, Kind kind, int threads)
      : weights_(task, kind, correlation_tiling(task, tile_size(kind))),
        threads_(threads),
        thread_at_(scratch_.per_thread(weights_.thread_floats(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:winograd-weights:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return scratch_.bytes(); }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const auto* weights = static_cast<const float*>(arguments[at::prepare_weights::weights]);
    auto* prepared = static_cast<float*>(arguments[at::prepare_weights::prepared]);
    run_team(threads_, [&](int thread, int team) {
      float* own = scratch_.of_thread(static_cast<float*>(scratch), thread_at_, thread);
      for (std::int64_t first = 0; first < weights_.padded_out(); first += weights_.most_out()) {
        const Outputs block = weights_.block_at(first);
        weights_.transform(weights, block, prepared + weights_.block_offset(block), own, thread, team);
      }
    });
  }

 private:
  TransformedWeights weights_;
  int threads_;
  Scratch scratch_;
  std::int64_t thread_at_;
};

}  // namespace

TransformedWeights::TransformedWeights(const model::ConvTask& task, Kind kind, const Tiling& tiling)
    : tiling_(tiling),
      mirrored_(task.pass == model::Pass::backward_data),
      groups_(task.groups),
      in_(tiling.src.extents.c / groups_),
      out_(tiling.dst.extents.c / groups_),
      points_(tiling.points()) {
  const direct::Tiles tiles = direct::correlation_tiles();
  const std::int64_t most_channels = most_channels_at_a_time(kind, points_);
  lanes_ = tiles.lanes;
  panel_ = lanes_ * (tiles.rows[3] >= 6 ? 4 : 2);
  padded_out_ = round_up(out_, lanes_);
  most_in_ = std::min(in_, most_channels);
  most_out_ = std::min(round_up(out_, panel_), round_up(most_channels, panel_));
}

Outputs TransformedWeights::block_at(std::int64_t first) const {
  return {first, std::min(most_out_, padded_out_ - first)};
}

std::int64_t TransformedWeights::thread_floats() const {
  return mirrored_ ? tiling_.taps() * transposed_rows * panel_ : 0;
}

std::string TransformedWeights::form() const {
  return fmt::format("winograd{} of {} points groups {} in {} out {} taps in {}{}{} panels of {} blocks of {} lanes {}",
                     mirrored_ ? " mirrored" : "", points_, groups_, in_, out_, tiling_.has_taps(0) ? "d" : "",
                     tiling_.has_taps(1) ? "h" : "", tiling_.has_taps(2) ? "w" : "", panel_, most_out_, lanes_);
}

/// `weights` is [group][tap][in][out] of the task: those of backward_data are transposed on the way, and their taps
/// mirrored.
void TransformedWeights::transform(const float* weights, const Outputs& block, float* to, float* scratch, int thread,
                                   int team) const {
  const std::int64_t taps = tiling_.taps();
  const std::int64_t strips = ceil_div(in_, transposed_rows);
  for (std::int64_t item = share(groups_ * strips, thread, team); item < share(groups_ * strips, thread + 1, team);
       ++item) {
    const std::int64_t group = item / strips;
    const std::int64_t c = item % strips * transposed_rows;
    const std::int64_t count = std::min(transposed_rows, in_ - c);
    for (std::int64_t o = 0; o < block.count; o += panel_) {
      const std::int64_t width = std::min(panel_, block.count - o);
      const std::int64_t first = block.first + o;
      MapCall call{.in = weights + (group * taps * in_ + c) * out_ + first,
                   .in_strides = tiling_.tap_strides(in_ * out_),
                   .out = to + panel_offset(group, 0, block, o) + c * width,
                   .out_strides = tiling_.point_strides(block.count * in_),
                   .channels = std::min(panel_, out_ - first),
                   .boxes = count,
                   .in_next = out_,
                   .out_next = width};
      if (mirrored_) {
        transpose(weights + (group * taps * out_ + first) * in_ + c, count, call.channels, scratch);
        call.in = scratch + (taps - 1) * transposed_rows * panel_;
        call.in_strides = tiling_.tap_strides(-transposed_rows * panel_);
        call.in_next = panel_;
      }
      tiling_.maps.weights_to_points(call);
    }
  }
}

/// A few reduction channels of one panel, all taps: [tap][transposed_rows][panel].
void TransformedWeights::transpose(const float* weights, std::int64_t channels, std::int64_t columns,
                                   float* transposed) const {
  for (std::int64_t tap = 0; tap < tiling_.taps(); ++tap) {
    matrix::pack_transposed({.from = weights + tap * out_ * in_,
                             .step = in_,
                             .depth = channels,
                             .columns = columns,
                             .to = transposed + tap * transposed_rows * panel_,
                             .panel = panel_});
  }
}

PreparedWeights prepared_weights(const model::ConvTask& task, Kind kind) {
  // Weights of at most four channels are transformed in less time than a step of its own would take to start.
  if (kind == Kind::small && applies_narrow(task)) return {};
  const TransformedWeights weights(task, kind, correlation_tiling(task, tile_size(kind)));
  return {.bytes = weights.floats() * static_cast<std::int64_t>(sizeof(float)), .form = weights.form()};
}

std::unique_ptr<Primitive> make_prepare_weights(const model::ConvTask& task, Kind kind, int threads) {
  return std::make_unique<PrepareWeights>(task, kind, threads);
}

}  // namespace orthant::kernels::winograd
