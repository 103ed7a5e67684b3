#include "orthant/kernels/matrix/conv.hpp"

#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/correlation.hpp"
#include "orthant/kernels/matrix/patches.hpp"
#include "orthant/kernels/matrix/tiles.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

namespace orthant::kernels::matrix {
namespace {

using model::ActivationKind;
using model::ConvTask;
using model::Pass;

constexpr std::int64_t most_depth = 160;        // a panel of B this deep stays in the first-level cache
constexpr std::int64_t aliasing_floats = 1024;  // pixels this far apart fall on few sets of the first-level cache
constexpr std::int64_t block_floats = 131072;   // pixels times depth that stay in the second-level cache

/// Forward: dst = sum over taps of src(tap) * weights(tap). Backward_data: src(tap) = dst * weights(tap)' for each tap.
/// A is read in place, pixel by pixel; the weights are B, cut into panels in scratch.
class Product final : public Primitive {
 public:
  Product(const ConvTask& task, int threads)
      : patches_(patches_of(task)),
        forward_(task.pass == Pass::forward),
        threads_(threads),
        slope_(slope_of(task.activation)),
        inner_(forward_ ? task.src.extents.c : task.dst.extents.c),
        columns_(forward_ ? task.dst.extents.c : task.src.extents.c) {
    const std::int64_t blocks = (inner_ + most_depth - 1) / most_depth;
    depth_ = (inner_ + blocks - 1) / blocks;
    panels_ = (columns_ + tiles_.panel - 1) / tiles_.panel;
    by_pixels_ = patches_.pixels() >= 64 * tiles_.most_rows * threads || panels_ < threads;
    zeroes_ = !forward_ && !covers_src(patches_);
    copies_ = a_row() % aliasing_floats == 0 && panels_ >= 4;
    block_ = block_floats / depth_;
  }

  [[nodiscard]] std::string name() const override { return "orthant:matrix:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return (packed_floats() + threads_ * copy_floats()) * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context& /*context*/, std::span<void* const> arguments, void* scratch) override {
    const CorrelationArguments given = correlation_arguments(forward_ ? Pass::forward : Pass::backward_data, arguments);
    auto* packed = static_cast<float*>(scratch);
    run_team(threads_, [&](int thread, int team) { prepare(given.weights, packed, thread, team); });
    const Memory memory{
        .a = given.src, .b = packed, .bias = given.bias, .c = given.dst, .copies = packed + packed_floats()};
    run_team(threads_, [&](int thread, int team) { run(memory, thread, team); });
  }

  /// Activations that are a slope for negative values.
  static bool is_line(const model::Activation& activation) {
    return activation.kind == ActivationKind::identity || activation.kind == ActivationKind::relu ||
           activation.kind == ActivationKind::leaky_relu;
  }

 private:
  struct Memory {
    const float* a = nullptr;
    const float* b = nullptr;
    const float* bias = nullptr;
    float* c = nullptr;
    float* copies = nullptr;
  };
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  static float slope_of(const model::Activation& activation) {
    if (activation.kind == ActivationKind::relu) return 0;
    return activation.kind == ActivationKind::leaky_relu ? static_cast<float>(activation.slope) : 1.0F;
  }

  [[nodiscard]] std::int64_t a_row() const { return forward_ ? patches_.src_step : patches_.dst_step; }
  [[nodiscard]] std::int64_t packed_floats() const { return patches_.taps() * inner_ * padded_columns(); }
  [[nodiscard]] std::int64_t copy_row() const {
    return (depth_ + line_floats - 1) / line_floats * line_floats + line_floats;
  }
  [[nodiscard]] std::int64_t copy_floats() const { return copies_ ? block_ * copy_row() : 0; }
  [[nodiscard]] std::int64_t padded_columns() const { return panels_ * tiles_.panel; }
  /// Where the panel of (tap, block of k from `first` on, panel) begins; blocks are `depth` deep.
  [[nodiscard]] std::int64_t panel_at(std::int64_t tap, std::int64_t first, std::int64_t depth,
                                      std::int64_t panel) const {
    return (tap * inner_ + first) * padded_columns() + panel * tiles_.panel * depth;
  }
  [[nodiscard]] std::int64_t depth_from(std::int64_t first) const { return std::min(depth_, inner_ - first); }

  void prepare(const float* weights, float* packed, int thread, int team) const {
    if (forward_) {
      const std::int64_t rows = patches_.taps() * inner_;
      for (std::int64_t row = share(rows, thread, team); row < share(rows, thread + 1, team); ++row) {
        const std::int64_t k = row % inner_;
        const std::int64_t first = k / depth_ * depth_;
        const std::int64_t depth = depth_from(first);
        pack({.from = weights + row * columns_,
              .step = columns_,
              .depth = 1,
              .columns = columns_,
              .to = packed + panel_at(row / inner_, first, depth, 0) + (k - first) * tiles_.panel,
              .panel = tiles_.panel,
              .panel_step = tiles_.panel * depth});
      }
      return;
    }
    const std::int64_t items = patches_.taps() * panels_;
    for (std::int64_t item = share(items, thread, team); item < share(items, thread + 1, team); ++item) {
      const std::int64_t panel = item % panels_;
      const std::int64_t column = panel * tiles_.panel;
      for (std::int64_t first = 0; first < inner_; first += depth_) {
        const std::int64_t depth = depth_from(first);
        pack_transposed({.from = weights + (item / panels_ * columns_ + column) * inner_ + first,
                         .step = inner_,
                         .depth = depth,
                         .columns = std::min<std::int64_t>(tiles_.panel, columns_ - column),
                         .to = packed + panel_at(item / panels_, first, depth, panel),
                         .panel = tiles_.panel,
                         .panel_step = 0});
      }
    }
  }

  void run(const Memory& memory, int thread, int team) const {
    if (zeroes_) zero_uncovered(patches_, memory.c, thread, team);
    Range pixels{0, patches_.pixels()};
    Range panels{0, panels_};
    Range& cut = by_pixels_ ? pixels : panels;
    cut = {share(cut.end, thread, team), share(cut.end, thread + 1, team)};
    float* copy = memory.copies + thread * copy_floats();
    for (std::int64_t begin = pixels.begin; begin < pixels.end; begin += block_) {
      const Range part{begin, std::min(begin + block_, pixels.end)};
      for (std::int64_t tap = 0; tap < patches_.taps(); ++tap) run_block(memory, part, panels, tap, copy);
    }
  }

  void run_block(const Memory& memory, Range pixels, Range panels, std::int64_t tap, float* copy) const {
    for (std::int64_t first = 0; first < inner_; first += depth_) {
      TileCall call{.a_row = copies_ ? copy_row() : a_row(), .depth = depth_from(first), .slope = slope_};
      call.c_row = forward_ ? patches_.dst_step : patches_.src_step;
      call.first = first == 0 && (tap == 0 || !forward_);
      call.last = first + depth_ >= inner_ && (tap + 1 == patches_.taps() || !forward_);
      if (copies_) copy_pixels(memory, pixels, tap, first, copy);
      for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const std::int64_t column = panel * tiles_.panel;
        const float* from = copy;
        call.b = memory.b + panel_at(tap, first, call.depth, panel);
        call.columns = std::min<std::int64_t>(tiles_.panel, columns_ - column);
        call.bias = memory.bias == nullptr ? nullptr : memory.bias + column;
        patches_.visit(pixels.begin, pixels.end, [&](std::int64_t line, std::int64_t pixel, std::int64_t count) {
          const Offsets at = offsets(line, pixel, tap);
          call.a = copies_ ? from : memory.a + at.a + first;
          call.c = memory.c + at.c + column;
          from += count * call.a_row;
          multiply_rows(call, count);
        });
      }
    }
  }

  struct Offsets {
    std::int64_t a = 0;
    std::int64_t c = 0;
  };
  [[nodiscard]] Offsets offsets(std::int64_t line, std::int64_t pixel, std::int64_t tap) const {
    const std::int64_t src = patches_.src_offset(line, tap) + pixel * patches_.src_step;
    const std::int64_t dst = patches_.dst_offset(line) + pixel * patches_.dst_step;
    return forward_ ? Offsets{src, dst} : Offsets{dst, src};
  }

  void copy_pixels(const Memory& memory, Range pixels, std::int64_t tap, std::int64_t first, float* copy) const {
    const std::int64_t depth = depth_from(first);
    patches_.visit(pixels.begin, pixels.end, [&](std::int64_t line, std::int64_t pixel, std::int64_t count) {
      const float* from = memory.a + offsets(line, pixel, tap).a + first;
      for (std::int64_t i = 0; i < count; ++i, copy += copy_row()) std::copy_n(from + i * a_row(), depth, copy);
    });
  }

  Patches patches_;
  bool forward_;
  int threads_;
  float slope_;
  std::int64_t inner_, columns_;
  std::int64_t depth_ = 0;
  std::int64_t panels_ = 0;
  std::int64_t block_ = 0;  ///< pixels whose A stays in the cache from panel to panel
  bool by_pixels_ = true;
  bool zeroes_ = false;
  bool copies_ = false;  ///< A is copied so that its pixels do not alias
  const Tiles& tiles_ = tiles();
};

}  // namespace

std::unique_ptr<Primitive> make_product(const ConvTask& task, int threads) {
  if (task.pass == Pass::forward && !Product::is_line(task.activation)) return nullptr;
  return std::make_unique<Product>(task, threads);
}

std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, int threads) {
  if (!applies(task)) return nullptr;
  if (task.pass == model::Pass::backward_weights) return make_weight_gradient(task, threads);
  return make_product(task, threads);
}

}  // namespace orthant::kernels::matrix
