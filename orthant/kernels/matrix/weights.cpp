#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/matrix/conv.hpp"
#include "orthant/kernels/matrix/patches.hpp"
#include "orthant/kernels/matrix/tiles.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/streaming.hpp"
#include "orthant/kernels/team.hpp"

#include <hwy/cache_control.h>

#include <array>

namespace orthant::kernels::matrix {
namespace {

using model::ConvTask;

constexpr std::int64_t block_pixels = 192;  // about
// How many terms are summed in a register: the rounding error grows with this number, and hardly with the number of
// sums added in memory.
constexpr std::int64_t most_terms = 72;
constexpr std::int64_t most_partial_floats = 1 << 20;

/// diff_weights(tap)[i][o] = sum over pixels of src(tap)[i] * diff_dst[o]. Blocks of pixels of both are cut into panels
/// in scratch. Threads divide the pixels and add up their partial sums or, if there are many weights, divide taps and
/// columns.
class WeightGradient final : public Primitive {
 public:
  WeightGradient(const ConvTask& task, int threads)
      : patches_(patches_of(task)),
        threads_(threads),
        accumulate_(task.accumulate),
        rows_(task.src.extents.c),
        columns_(task.dst.extents.c),
        row_panels_((rows_ + tiles_.most_rows - 1) / tiles_.most_rows),
        row_panel_((rows_ + row_panels_ - 1) / row_panels_),
        column_panels_((columns_ + tiles_.panel - 1) / tiles_.panel) {
    const bool few_weights = weights() <= most_partial_floats && patches_.pixels() >= 2048 * threads;
    by_pixels_ = threads == 1 || few_weights || items() < threads;
    const std::int64_t pixels = by_pixels_ ? ceil_div(patches_.pixels(), threads) : patches_.pixels();
    const std::int64_t blocks = std::max<std::int64_t>(1, (pixels + block_pixels / 2) / block_pixels);
    block_ = ceil_div(pixels, blocks);
    stream_ = blocks == 1 && (threads == 1 || !by_pixels_) && !accumulate_ &&
              writes_around_cache(weights(), columns_, tiles_.panel);
    if (task.bias) bias_ = elementwise::make_bias_gradient({.accumulate = task.accumulate, .dst = task.dst}, threads);
  }

  [[nodiscard]] std::string name() const override { return "orthant:matrix:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return own_floats() * static_cast<std::int64_t>(sizeof(float)) + (bias_ ? bias_->scratch_bytes() : 0);
  }

  void execute(const Context& context, std::span<void* const> arguments, void* scratch) override;

 private:
  struct Memory {
    const float* src = nullptr;
    const float* diff = nullptr;
    float* weights = nullptr;
    float* packed = nullptr;
    float* partial = nullptr;
  };
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  [[nodiscard]] std::int64_t items() const { return patches_.taps() * column_panels_; }
  [[nodiscard]] std::int64_t weights() const { return patches_.taps() * rows_ * columns_; }
  [[nodiscard]] std::int64_t diff_floats() const { return column_panels_ * tiles_.panel * block_; }
  [[nodiscard]] std::int64_t thread_floats() const {
    return round_up(diff_floats() + row_panels_ * row_panel_ * block_, line_floats);
  }

  /// Floats of scratch memory without that of the bias.
  [[nodiscard]] std::int64_t own_floats() const {
    return round_up(threads_ * thread_floats() + (by_pixels_ ? (threads_ - 1) * weights() : 0), line_floats);
  }

  void run(const Memory& memory, int part) const {
    Range pixels{0, patches_.pixels()};
    Range items{0, this->items()};
    Range& cut = by_pixels_ ? pixels : items;
    cut = {share(cut.end, part, threads_), share(cut.end, part + 1, threads_)};
    float* sums = by_pixels_ && part > 0 ? memory.partial + (part - 1) * weights() : memory.weights;
    float* diff = memory.packed + part * thread_floats();
    const bool adds = accumulate_ && sums == memory.weights;
    if (pixels.begin == pixels.end && !adds) std::fill_n(sums, weights(), 0.0F);
    for (std::int64_t begin = pixels.begin; begin < pixels.end; begin += block_) {
      const Range block{begin, std::min(begin + block_, pixels.end)};
      pack_diff(memory, block, panels_of(items), diff);
      for (std::int64_t tap = items.begin / column_panels_; tap * column_panels_ < items.end; ++tap) {
        const std::int64_t first = tap * column_panels_;
        pack_src(memory, block, tap, diff + diff_floats());
        add_products(diff, block,
                     {std::max(items.begin - first, std::int64_t{0}), std::min(items.end - first, column_panels_)},
                     begin == pixels.begin && !adds, sums + tap * rows_ * columns_, ahead_of(memory, block));
      }
    }
    if (stream_) hwy::FlushStream();
  }

  /// The panels of columns that some items have.
  [[nodiscard]] Range panels_of(Range items) const {
    if (items.begin / column_panels_ != (items.end - 1) / column_panels_) return {0, column_panels_};
    return {items.begin % column_panels_, (items.end - 1) % column_panels_ + 1};
  }

  void pack_diff(const Memory& memory, Range pixels, Range panels, float* to) const {
    const std::int64_t depth = pixels.end - pixels.begin;
    const std::int64_t column = panels.begin * tiles_.panel;
    to += column * depth;
    patches_.visit(pixels.begin, pixels.end, [&](std::int64_t line, std::int64_t pixel, std::int64_t count) {
      pack({.from = memory.diff + patches_.dst_offset(line) + pixel * patches_.dst_step + column,
            .step = patches_.dst_step,
            .depth = count,
            .columns = std::min(panels.end * tiles_.panel, columns_) - column,
            .to = to,
            .panel = tiles_.panel,
            .panel_step = tiles_.panel * depth});
      to += count * tiles_.panel;
    });
  }

  void pack_src(const Memory& memory, Range pixels, std::int64_t tap, float* to) const {
    const std::int64_t depth = pixels.end - pixels.begin;
    const auto pack_zeros = [&](std::int64_t count) {
      for (std::int64_t panel = 0; panel < row_panels_; ++panel)
        std::fill_n(to + panel * row_panel_ * depth, count * row_panel_, 0.0F);
      to += count * row_panel_;
    };
    patches_.visit(pixels.begin, pixels.end, [&](std::int64_t line, std::int64_t first, std::int64_t count) {
      const auto [begin, end] = patches_.inside(line, tap);
      const std::int64_t lo = std::clamp(begin, first, first + count);
      const std::int64_t hi = std::clamp(end, lo, first + count);
      pack_zeros(lo - first);
      pack({.from = memory.src + patches_.src_offset(line, tap) + lo * patches_.src_step,
            .step = patches_.src_step,
            .depth = hi - lo,
            .columns = rows_,
            .to = to,
            .panel = row_panel_,
            .panel_step = row_panel_ * depth});
      to += (hi - lo) * row_panel_;
      pack_zeros(first + count - hi);
    });
  }

  /// What the next block of pixels reads, if that is nearly contiguous in each tensor.
  struct Ahead {
    const float* diff = nullptr;
    std::int64_t diff_floats = 0;
    const float* src = nullptr;
    std::int64_t src_floats = 0;

    [[nodiscard]] const float* at(std::int64_t position, const float* otherwise) const {
      if (position < diff_floats) return diff + position;
      position -= diff_floats;
      return position < src_floats ? src + position : otherwise;
    }
  };
  [[nodiscard]] Ahead ahead_of(const Memory& memory, Range pixels) const {
    const std::int64_t first = pixels.end, count = std::min(block_, patches_.pixels() - first);
    if (patches_.taps() > 1 || count == 0) return {};
    const std::int64_t diff = dst_at(first), src = src_at(first);
    const std::int64_t diff_floats = dst_at(first + count - 1) + patches_.dst_step - diff;
    const std::int64_t src_floats = src_at(first + count - 1) + patches_.src_step - src;
    const bool near = diff_floats <= 2 * count * patches_.dst_step && src_floats <= 2 * count * patches_.src_step;
    if (!near) return {};
    return {.diff = memory.diff + diff, .diff_floats = diff_floats, .src = memory.src + src, .src_floats = src_floats};
  }
  [[nodiscard]] std::int64_t dst_at(std::int64_t pixel) const {
    return patches_.dst_offset(pixel / patches_.line_pixels) + pixel % patches_.line_pixels * patches_.dst_step;
  }
  [[nodiscard]] std::int64_t src_at(std::int64_t pixel) const {
    return patches_.src_offset(pixel / patches_.line_pixels, 0) + pixel % patches_.line_pixels * patches_.src_step;
  }

  void add_products(const float* packed, Range pixels, Range panels, bool first, float* sums,
                    const Ahead& ahead) const {
    std::int64_t position = 0;
    const std::int64_t depth = pixels.end - pixels.begin;
    const std::int64_t run = ceil_div(depth, ceil_div(depth, most_terms));
    TileCall call{.a_row = 1,
                  .a_step = row_panel_,
                  .depth = depth,
                  .c_row = columns_,
                  .first = first,
                  .stream = stream_ && is_aligned(sums),
                  .ahead_row = run * line_floats,
                  .ahead_lines = run};
    for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const std::int64_t column = panel * tiles_.panel;
      call.b = packed + column * call.depth;
      call.columns = std::min<std::int64_t>(tiles_.panel, columns_ - column);
      for (std::int64_t row = 0; row < rows_; row += row_panel_) {
        call.a = packed + diff_floats() + row * call.depth;
        call.c = sums + row * columns_ + column;
        call.ahead = ahead.at(position, call.a);
        position += call.depth * line_floats;
        tiles_.rows_by_runs[static_cast<std::size_t>(std::min(row_panel_, rows_ - row) - 1)](call);
      }
    }
  }

  void add_partials(const Memory& memory, int thread, int team) const {
    const std::int64_t begin = share(weights(), thread, team);
    const std::int64_t end = share(weights(), thread + 1, team);
    for (int part = 1; part < threads_; ++part) {
      const float* from = memory.partial + (part - 1) * weights();
      for (std::int64_t i = begin; i < end; ++i) memory.weights[i] += from[i];
    }
  }

  const Tiles& tiles_ = tiles();
  Patches patches_;
  int threads_;
  bool accumulate_;
  std::int64_t rows_, columns_;
  std::int64_t row_panels_, row_panel_;
  std::int64_t column_panels_;
  bool by_pixels_ = true;
  std::int64_t block_ = 1;           ///< pixels that a thread takes at a time
  bool stream_ = false;              ///< write around the cache: every tile of weights is written once
  std::unique_ptr<Primitive> bias_;  ///< sums diff_dst; null without a bias
};

void WeightGradient::execute(const Context& context, std::span<void* const> arguments, void* scratch) {
  if (bias_)
    bias_->execute(
        context,
        std::array{arguments[at::conv_backward_weights::diff_dst], arguments[at::conv_backward_weights::diff_bias]},
        static_cast<float*>(scratch) + own_floats());
  const Memory memory{.src = static_cast<const float*>(arguments[at::conv_backward_weights::src]),
                      .diff = static_cast<const float*>(arguments[at::conv_backward_weights::diff_dst]),
                      .weights = static_cast<float*>(arguments[at::conv_backward_weights::diff_weights]),
                      .packed = static_cast<float*>(scratch),
                      .partial = static_cast<float*>(scratch) + threads_ * thread_floats()};
  run_team(threads_, [&](int thread, int team) {
    for (int part = thread; part < threads_; part += team) run(memory, part);
  });
  if (!by_pixels_ || threads_ == 1) return;
  run_team(threads_, [&](int thread, int team) { add_partials(memory, thread, team); });
}

}  // namespace

std::unique_ptr<Primitive> make_weight_gradient(const ConvTask& task, int threads) {
  return std::make_unique<WeightGradient>(task, threads);
}

}  // namespace orthant::kernels::matrix
