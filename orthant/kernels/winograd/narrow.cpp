#include "orthant/kernels/direct/tiles.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/streaming.hpp"
#include "orthant/kernels/team.hpp"
#include "orthant/kernels/winograd/conv.hpp"
#include "orthant/kernels/winograd/scratch.hpp"
#include "orthant/kernels/winograd/stretches.hpp"

#include <hwy/cache_control.h>

#include <algorithm>

namespace orthant::kernels::winograd {
namespace {

/// What forward and backward_weights have in common: sizes, and the way from src to points.
class Narrow : public Primitive {
 public:
  Narrow(const model::ConvTask& task, int threads)
      : tiling_(forward_tiling(task, TileSize::small)),
        threads_(threads),
        groups_(task.groups),
        in_(task.src.extents.c / groups_),
        out_(task.dst.extents.c / groups_),
        stretches_(tiling_, in_),
        steps_(narrow_steps()),
        lanes_(steps_.lanes),
        vectors_(ceil_div(out_, lanes_)),
        points_line_(stretches_.most_tiles() * tile_floats),
        weights_vector_(stretches_.lines() * in_ * points_w * lanes_) {
    cells_at_ = scratch_.per_thread(stretches_.cells_floats(), threads);
    points_at_ = scratch_.per_thread(stretches_.lines() * points_line_, threads);
  }

  [[nodiscard]] std::string name() const override { return "orthant:winograd-narrow:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return scratch_.bytes(); }

 protected:
  /// Maps between the weights of one vector of outputs and their points: [line][in][point in w][lane].
  [[nodiscard]] Strides points_strides() const {
    const std::int64_t line = in_ * points_w * lanes_;
    return {.d = line * (tiling_.has_taps(1) ? points_w : 1), .h = line, .w = lanes_};
  }
  [[nodiscard]] std::int64_t weights_at(std::int64_t group, std::int64_t vector) const {
    return group * tiling_.taps() * in_ * out_ + vector * lanes_;
  }
  [[nodiscard]] std::int64_t width(std::int64_t vector) const { return std::min(lanes_, out_ - vector * lanes_); }

  /// Returns the points of a stretch, in the thread's memory.
  const float* to_points(const Stretch& stretch, const float* src, float* memory, int thread) const {
    float* const points = scratch_.of_thread(memory, points_at_, thread);
    float* const copies = scratch_.of_thread(memory, cells_at_, thread);
    stretches_.for_each_part(stretch, src, copies, [&](const CellRows& rows, std::int64_t tile, std::int64_t tiles) {
      steps_.to_points[stretches_.steps_entry()](
          {.rows = rows, .tiles = tiles, .points = points + tile * tile_floats, .line = points_line_});
    });
    return points;
  }

  Tiling tiling_;
  int threads_;
  std::int64_t groups_, in_, out_;  ///< channels per group
  Stretches stretches_;
  NarrowSteps steps_;
  std::int64_t lanes_, vectors_;
  std::int64_t points_line_;
  std::int64_t weights_vector_;  ///< floats of the transformed weights of one vector of outputs
  Scratch scratch_;
  std::int64_t cells_at_, points_at_;
};

class NarrowCorrelation final : public Narrow {
 public:
  NarrowCorrelation(const model::ConvTask& task, int threads)
      : Narrow(task, threads),
        bias_(task.bias),
        slope_(slope_of(task.activation)),
        stream_(out_ % lanes_ == 0 && writes_around_cache(task.dst, lanes_)),
        sums_line_(stretches_.most_tiles() * 2 * lanes_),
        weights_at_(scratch_.shared(groups_ * vectors_ * weights_vector_)),
        sums_at_(scratch_.per_thread(stretches_.lines() * sums_line_, threads)) {}

  void execute(const Context& context, std::span<void* const> arguments, void* scratch) override {
    auto* memory = static_cast<float*>(scratch);
    transform_weights(static_cast<const float*>(arguments[at::conv_forward::weights]), memory + weights_at_);
    const auto* src = static_cast<const float*>(arguments[at::conv_forward::src]);
    run_team(threads_, [&](int thread, int team) {
      const std::int64_t items = groups_ * stretches_.count();
      for (std::int64_t item = share(items, thread, team); item < share(items, thread + 1, team); ++item) {
        poll(context, thread);
        const std::int64_t group = item / stretches_.count();
        const Stretch stretch = stretches_.at(item % stretches_.count());
        const float* points = to_points(stretch, src + group * in_, memory, thread);
        float* const sums = scratch_.of_thread(memory, sums_at_, thread);
        for (std::int64_t v = 0; v < vectors_; ++v) {
          multiply(stretch, points, memory + weights_at_ + (group * vectors_ + v) * weights_vector_, sums);
          finish(stretch, sums, group, v, arguments);
        }
      }
      if (stream_) hwy::FlushStream();
    });
  }

 private:
  void transform_weights(const float* weights, float* transformed) const {
    std::fill_n(transformed, groups_ * vectors_ * weights_vector_, 0.0F);
    for (std::int64_t group = 0; group < groups_; ++group) {
      for (std::int64_t v = 0; v < vectors_; ++v, transformed += weights_vector_) {
        tiling_.maps.weights_to_points({.in = weights + Narrow::weights_at(group, v),
                                        .in_strides = tiling_.tap_strides(in_ * out_),
                                        .out = transformed,
                                        .out_strides = points_strides(),
                                        .channels = width(v),
                                        .boxes = in_,
                                        .in_next = out_,
                                        .out_next = points_w * lanes_});
      }
    }
  }

  void multiply(const Stretch& stretch, const float* points, const float* weights, float* sums) const {
    steps_.multiply({.points = points,
                     .line = points_line_,
                     .lines = stretches_.lines(),
                     .tiles = stretch.tiles,
                     .channels = in_,
                     .weights = weights,
                     .sums = sums,
                     .sums_line = sums_line_});
  }

  void finish(const Stretch& stretch, const float* sums, std::int64_t group, std::int64_t vector,
              std::span<void* const> arguments) const {
    const std::int64_t channel = group * out_ + vector * lanes_;
    auto* const dst = static_cast<float*>(arguments[at::conv_forward::dst]);
    steps_.finish[stretches_.steps_entry()](
        {.sums = sums,
         .sums_line = sums_line_,
         .dst = stretches_.rows_of(stretch, dst + channel),
         .tail = width(vector),
         .bias = bias_ ? static_cast<const float*>(arguments[at::conv_forward::bias]) + channel : nullptr,
         .slope = slope_,
         .stream = stream_ && is_aligned(dst)});
  }

  bool bias_;
  float slope_;
  bool stream_;
  std::int64_t sums_line_;
  std::int64_t weights_at_, sums_at_;
};

class NarrowWeightGradient final : public Narrow {
 public:
  NarrowWeightGradient(const model::ConvTask& task, int threads)
      : Narrow(task, threads),
        accumulate_(task.accumulate),
        bias_(task.bias),
        pixel_sum_(direct::weight_tiles().pixel_sum),
        sums_(groups_ * vectors_ * (weights_vector_ + lanes_)),
        sums_at_(scratch_.per_thread(sums_, threads)),
        recent_at_(scratch_.per_thread(sums_, threads)),
        diff_at_(scratch_.per_thread(stretches_.dst_rows() * stretches_.most_tiles() * 2 * lanes_, threads)),
        result_at_(scratch_.shared(accumulate_ ? tiling_.taps() * in_ * lanes_ : 0)) {}

  void execute(const Context& context, std::span<void* const> arguments, void* scratch) override {
    auto* memory = static_cast<float*>(scratch);
    const auto* src = static_cast<const float*>(arguments[at::conv_backward_weights::src]);
    const auto* diff = static_cast<const float*>(arguments[at::conv_backward_weights::diff_dst]);
    int parts = 1;
    run_team(threads_, [&](int thread, int team) {
      if (thread == 0) parts = team;
      float* const sums = scratch_.of_thread(memory, sums_at_, thread);
      float* const recent = scratch_.of_thread(memory, recent_at_, thread);
      std::fill_n(sums, sums_, 0.0F);
      std::fill_n(recent, sums_, 0.0F);
      const std::int64_t items = groups_ * stretches_.count();
      const std::int64_t first = share(items, thread, team);
      const std::int64_t end = share(items, thread + 1, team);
      for (std::int64_t item = first; item < end; ++item) {
        poll(context, thread);
        const std::int64_t group = item / stretches_.count();
        const Stretch stretch = stretches_.at(item % stretches_.count());
        const float* points = to_points(stretch, src + group * in_, memory, thread);
        for (std::int64_t v = 0; v < vectors_; ++v) add(stretch, points, diff, recent, {group, v}, memory, thread);
        if ((item - first) % recent_stretches == recent_stretches - 1 || item + 1 == end) move(recent, sums);
      }
    });
    finish(parts, memory, static_cast<float*>(arguments[at::conv_backward_weights::diff_weights]),
           bias_ ? static_cast<float*>(arguments[at::conv_backward_weights::diff_bias]) : nullptr);
  }

 private:
  static constexpr std::int64_t recent_stretches = 64;

  /// Some output channels.
  struct Outputs {
    std::int64_t group, vector;
  };

  /// Sums of some outputs: those of the weights' points, then that of the bias.
  [[nodiscard]] std::int64_t sums_of(const Outputs& outputs) const {
    return (outputs.group * vectors_ + outputs.vector) * (weights_vector_ + lanes_);
  }

  /// Long sums are made of sums of a few stretches: adding each to the whole would round it too much.
  void move(float* recent, float* sums) const {
    for (std::int64_t i = 0; i < sums_; ++i) {
      sums[i] += recent[i];
      recent[i] = 0;
    }
  }

  void add(const Stretch& stretch, const float* points, const float* diff, float* sums, const Outputs& outputs,
           float* memory, int thread) const {
    const std::int64_t cells = 2 * stretch.tiles;
    TileRows<const float> rows = stretches_.rows_of(stretch, diff + outputs.group * out_ + outputs.vector * lanes_);
    if (width(outputs.vector) < lanes_ || rows.cells < cells || !all_inside(rows))
      rows = copy(rows, stretch.tiles, width(outputs.vector), scratch_.of_thread(memory, diff_at_, thread));
    float* const own = sums + sums_of(outputs);
    steps_.outer[stretches_.steps_entry()]({.points = points,
                                            .line = points_line_,
                                            .tiles = stretch.tiles,
                                            .channels = in_,
                                            .diff = rows.first,
                                            .diff_step = rows.step,
                                            .weights = own});
    if (bias_) add_cells(rows, cells, own + weights_vector_);
  }

  [[nodiscard]] bool all_inside(const TileRows<const float>& rows) const {
    return std::all_of(rows.first.begin(), rows.first.begin() + stretches_.dst_rows(),
                       [](const float* row) { return row != nullptr; });
  }

  /// Whole vectors for all cells of a stretch; zeros outside.
  TileRows<const float> copy(const TileRows<const float>& rows, std::int64_t tiles, std::int64_t channels,
                             float* to) const {
    TileRows<const float> copies{.step = lanes_, .cells = 2 * tiles};
    std::fill_n(to, stretches_.dst_rows() * copies.cells * lanes_, 0.0F);
    for (std::int64_t row = 0; row < stretches_.dst_rows(); ++row, to += copies.cells * lanes_) {
      const float* const from = rows.first[static_cast<std::size_t>(row)];
      copies.first[static_cast<std::size_t>(row)] = to;
      for (std::int64_t cell = 0; from != nullptr && cell < rows.cells; ++cell)
        std::copy_n(from + cell * rows.step, channels, to + cell * lanes_);
    }
    return copies;
  }

  void add_cells(const TileRows<const float>& rows, std::int64_t cells, float* sums) const {
    for (std::int64_t row = 0; row < stretches_.dst_rows(); ++row) {
      pixel_sum_({.diff = rows.first[static_cast<std::size_t>(row)],
                  .diff_step = rows.step,
                  .pixels = cells,
                  .channels = lanes_,
                  .sums = sums});
    }
  }

  /// Adds up the threads' sums, and maps them to the weights.
  void finish(int parts, float* memory, float* diff_weights, float* diff_bias) const {
    float* const sums = scratch_.of_thread(memory, sums_at_, 0);
    for (int part = 1; part < parts; ++part) {
      const float* const other = scratch_.of_thread(memory, sums_at_, part);
      for (std::int64_t i = 0; i < sums_; ++i) sums[i] += other[i];
    }
    for (std::int64_t group = 0; group < groups_; ++group) {
      for (std::int64_t v = 0; v < vectors_; ++v) {
        float* const own = sums + sums_of({group, v});
        halve(own);
        to_weights(own, diff_weights + Narrow::weights_at(group, v), width(v), memory + result_at_);
        if (!bias_) continue;
        float* const bias = diff_bias + group * out_ + v * lanes_;
        for (std::int64_t o = 0; o < width(v); ++o) bias[o] = (accumulate_ ? bias[o] : 0) + own[weights_vector_ + o];
      }
    }
  }

  /// Points between two cells were counted double, in every dim with three taps.
  void halve(float* sums) const {
    const auto factor = [](std::int64_t point) { return point == 1 || point == 2 ? 0.5F : 1.0F; };
    const std::int64_t points_h = tiling_.has_taps(1) ? points_w : 1;
    for (std::int64_t line = 0; line < stretches_.lines(); ++line) {
      const float of_line = factor(line / points_h) * factor(line % points_h);
      for (std::int64_t c = 0; c < in_; ++c) {
        for (std::int64_t p = 0; p < points_w; ++p) {
          for (std::int64_t o = 0; o < lanes_; ++o) *sums++ *= of_line * factor(p);
        }
      }
    }
  }

  void to_weights(const float* points, float* diff_weights, std::int64_t channels, float* result) const {
    const std::int64_t next = accumulate_ ? lanes_ : out_;
    tiling_.maps.points_to_weights({.in = points,
                                    .in_strides = points_strides(),
                                    .out = accumulate_ ? result : diff_weights,
                                    .out_strides = tiling_.tap_strides(in_ * next),
                                    .channels = channels,
                                    .boxes = in_,
                                    .in_next = points_w * lanes_,
                                    .out_next = next});
    if (!accumulate_) return;
    for (std::int64_t row = 0; row < tiling_.taps() * in_; ++row) {
      for (std::int64_t o = 0; o < channels; ++o) diff_weights[row * out_ + o] += result[row * lanes_ + o];
    }
  }

  bool accumulate_, bias_;
  void (*pixel_sum_)(const direct::PixelSumCall&);
  std::int64_t sums_;  ///< floats of a thread's sums
  std::int64_t sums_at_, recent_at_, diff_at_, result_at_;
};

}  // namespace

bool applies_narrow(const model::ConvTask& task) {
  constexpr std::int64_t most_outputs = 1024;  // every thread has sums for all of them
  const std::int64_t outputs = task.groups * round_up(task.dst.extents.c / task.groups, line_floats);
  return applies(task, TileSize::small) && task.pass != model::Pass::backward_data && task.window.size.w == 3 &&
         task.src.extents.c / task.groups <= narrow_channels && outputs <= most_outputs &&
         narrow_steps().multiply != nullptr;
}

std::unique_ptr<Primitive> make_narrow(const model::ConvTask& task, int threads) {
  if (task.pass == model::Pass::backward_weights) return std::make_unique<NarrowWeightGradient>(task, threads);
  return std::make_unique<NarrowCorrelation>(task, threads);
}

}  // namespace orthant::kernels::winograd
