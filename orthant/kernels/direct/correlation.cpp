#include "orthant/kernels/direct/correlation.hpp"

#include "orthant/base/format.hpp"
#include "orthant/kernels/direct/activation.hpp"
#include "orthant/kernels/matrix/tiles.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/streaming.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace orthant::kernels::direct {
namespace {

// Floats of the weights of one panel and one block of channels: they stay in the second-level cache beside the source
// rows.
constexpr std::int64_t panel_floats = 64 * 1024;

// Below this number of outputs, threads divide the panels of weights among themselves rather than the outputs.
constexpr std::int64_t shared_outputs = 1024;

// About how many terms are summed in a register: the rounding error grows with this number, and hardly with the number
// of sums put aside.
constexpr std::int64_t most_terms = 128;

std::int64_t aligned(std::int64_t floats) { return ceil_div(floats, 16) * 16; }

// Rows of few pixels need more vectors, so that enough independent sums are in flight.
int choose_vectors(const Tiles& tiles, std::int64_t out_vectors, std::int64_t row) {
  const std::int64_t wanted = row <= 4 ? 4 : 2;
  if (out_vectors == 3 && row <= tiles.rows[2]) return 3;
  return static_cast<int>(std::min({wanted, out_vectors, static_cast<std::int64_t>(max_vectors)}));
}

}  // namespace

struct CorrelationKernel::Slab {
  const Arguments* arguments = nullptr;
  Fetch* ahead = nullptr;               ///< goes on from tile to tile
  std::int64_t first_out = 0, out = 0;  ///< channels of the group
  int vectors = 1;
  std::int64_t first_in = 0, in = 0;
  const float* weights = nullptr;
  const float* bias = nullptr;
  bool first = true, last = true;
  Cut cut;
  Run* runs = nullptr;
  float* aside = nullptr;   ///< for a tile's sums
  float* buffer = nullptr;  ///< for a tile, if vectors cannot be stored to dst
};

CorrelationKernel::CorrelationKernel(Correlation correlation, Epilogue epilogue, int threads)
    : correlation_(std::move(correlation)), epilogue_(epilogue), tiles_(correlation_tiles()), threads_(threads) {
  out_vectors_ = ceil_div(correlation_.out, tiles_.lanes);
  vectors_ = choose_vectors(tiles_, out_vectors_, correlation_.w.count);
  const bool many_panels = outputs(correlation_) < shared_outputs && panel_count() >= 4 * threads;
  blocks_ = choose_blocks(correlation_, many_panels ? 1 : 4 * threads, false);
  rows_ = plan_rows(correlation_, blocks_);
  dst_in_place_ = correlation_.dst.strides.c == 1 || correlation_.out == 1;

  const std::int64_t per_channel = std::max<std::int64_t>(taps(correlation_) * vectors_ * tiles_.lanes, 1);
  const std::int64_t in_blocks =
      dst_in_place_
          ? std::clamp<std::int64_t>(ceil_div(correlation_.in * per_channel, panel_floats), 1, correlation_.in)
          : 1;
  in_block_ = ceil_div(correlation_.in, in_blocks);
  weights_in_place_ = !correlation_.transposed && panel_count() == 1 && in_block_ == correlation_.in &&
                      correlation_.out == out_vectors_ * tiles_.lanes;
  slide_ = can_slide();
  stream_ = dst_in_place_ && in_block_ == correlation_.in && correlation_.out % tiles_.lanes == 0 &&
            writes_around_cache(correlation_.dst, tiles_.lanes);
  const std::int64_t units = std::max<std::int64_t>(block_count(correlation_, blocks_), 1);
  if (many_panels || units < 4 * threads)
    panel_splits_ = std::min(panel_count(), ceil_div(4 * threads, many_panels ? 1 : units));
}

bool CorrelationKernel::whole_rows() const { return rows_.runs_over_w && in_block_ == correlation_.in; }

bool CorrelationKernel::can_slide() const {
  return out_vectors_ == 1 && correlation_.w.src_step == 1 && whole_rows() && correlation_.w.taps.size() == slide_taps;
}

std::string CorrelationKernel::variant() const {
  if (slide_) return fmt::format("slide{}x1", tiles_.slide_rows);
  return fmt::format("tile{}x{}", tiles_.rows[vectors_ - 1], vectors_);
}

std::int64_t CorrelationKernel::panel_count() const { return ceil_div(out_vectors_, vectors_); }

int CorrelationKernel::panel_vectors(std::int64_t panel) const {
  return static_cast<int>(std::min<std::int64_t>(vectors_, out_vectors_ - panel * vectors_));
}

std::int64_t CorrelationKernel::panel_offset(std::int64_t group, std::int64_t panel) const {
  return (group * out_vectors_ + panel * vectors_) * tiles_.lanes * taps(correlation_) * correlation_.in;
}

std::int64_t CorrelationKernel::thread_floats() const {
  const std::int64_t runs = taps(correlation_) * (1 + correlation_.in / most_terms);
  const std::int64_t run_floats = aligned(runs * static_cast<std::int64_t>(sizeof(Run) / sizeof(float)));
  return aligned(row_floats(rows_)) + run_floats + 2 * tile_floats;
}

std::int64_t CorrelationKernel::scratch_floats() const {
  const std::int64_t weights = weights_in_place_ ? 0 : aligned(panel_offset(correlation_.groups, 0));
  return weights + aligned(correlation_.groups * out_vectors_ * tiles_.lanes) + threads_ * thread_floats();
}

void CorrelationKernel::prepare(const Arguments& arguments, int thread) const {
  const std::int64_t padded = out_vectors_ * tiles_.lanes;
  float* bias = arguments.scratch + (weights_in_place_ ? 0 : aligned(panel_offset(correlation_.groups, 0)));
  if (thread == 0) {
    for (std::int64_t g = 0; g < correlation_.groups; ++g) {
      std::fill_n(bias + g * padded, padded, 0.0F);
      if (epilogue_.bias) std::copy_n(arguments.bias + g * correlation_.out, correlation_.out, bias + g * padded);
    }
  }
  if (weights_in_place_) return;
  const std::int64_t panels = panel_count();
  for (std::int64_t index = thread; index < correlation_.groups * panels; index += threads_) {
    pack_panel(arguments.weights, arguments.scratch, index / panels, index % panels);
  }
}

void CorrelationKernel::pack_panel(const float* weights, float* to, std::int64_t group, std::int64_t panel) const {
  to += panel_offset(group, panel);
  const std::int64_t width = panel_vectors(panel) * tiles_.lanes;
  const std::int64_t first_out = panel * vectors_ * tiles_.lanes;
  const tensor::Extent3& window = correlation_.window;
  weights += group * window.d * window.h * window.w * correlation_.in * correlation_.out;
  matrix::PackCall call{.step = correlation_.transposed ? correlation_.in : correlation_.out,
                        .columns = std::min(width, correlation_.out - first_out),
                        .to = to,
                        .panel = width};
  for (std::int64_t first_in = 0; first_in < correlation_.in; first_in += in_block_) {
    call.depth = std::min(in_block_, correlation_.in - first_in);
    const std::int64_t first =
        correlation_.transposed ? first_out * correlation_.in + first_in : first_in * correlation_.out + first_out;
    for (const Tap& d : correlation_.d.taps) {
      for (const Tap& h : correlation_.h.taps) {
        for (const Tap& w : correlation_.w.taps) {
          const std::int64_t tap = (d.index * window.h + h.index) * window.w + w.index;
          call.from = weights + tap * correlation_.in * correlation_.out + first;
          correlation_.transposed ? matrix::pack_transposed(call) : matrix::pack(call);
          call.to += call.depth * width;
        }
      }
    }
  }
}

void CorrelationKernel::run(const Arguments& arguments, int thread) const {
  float* memory = arguments.scratch + (scratch_floats() - threads_ * thread_floats()) + thread * thread_floats();
  Rows rows(correlation_, rows_, arguments.src, memory);
  const std::int64_t units = block_count(correlation_, blocks_);
  const std::int64_t items = units * panel_splits_;
  const std::int64_t last = items * (thread + 1) / threads_;
  for (std::int64_t item = items * thread / threads_; item < last; ++item) {
    const std::int64_t split = item / units;
    const Range panels{panel_count() * split / panel_splits_, panel_count() * (split + 1) / panel_splits_};
    const Unit unit = unit_at(correlation_, blocks_, item % units);
    rows.load(unit);
    Fetch ahead;
    if (item + 1 < last) {
      const Unit next = unit_at(correlation_, blocks_, (item + 1) % units);
      ahead = {.from = rows.start_of(next), .step = fetch_step(rows.floats_of(next), unit, panels)};
    }
    run_unit(arguments, rows, unit, panels, ahead, memory + aligned(row_floats(rows_)));
  }
  if (stream_) hwy::FlushStream();
}

std::int64_t CorrelationKernel::fetch_step(std::int64_t floats, const Unit& unit, Range panels) const {
  const std::int64_t tiles = (unit.d.hi - unit.d.lo) * (unit.h.hi - unit.h.lo) * row_tiles(unit.w.hi - unit.w.lo);
  const std::int64_t steps =
      (panels.hi - panels.lo) * tiles * taps(correlation_) * correlation_.in / (slide_ ? slide_taps : 1);
  return std::min(ceil_div(floats, std::max<std::int64_t>(steps, 1)), line_floats);
}

std::int64_t CorrelationKernel::row_tiles(std::int64_t pixels) const {
  return ceil_div(pixels, slide_ ? tiles_.slide_rows : tiles_.rows[vectors_ - 1]);
}

void CorrelationKernel::run_unit(const Arguments& arguments, Rows& rows, const Unit& unit, Range panels, Fetch ahead,
                                 float* memory) const {
  const std::int64_t lanes = tiles_.lanes;
  const float* bias = arguments.scratch + (weights_in_place_ ? 0 : aligned(panel_offset(correlation_.groups, 0)));
  const float* weights = weights_in_place_ ? arguments.weights : arguments.scratch;
  for (std::int64_t panel = panels.lo; panel < panels.hi; ++panel) {
    Slab slab{.arguments = &arguments, .ahead = &ahead, .first_out = panel * vectors_ * lanes};
    slab.vectors = panel_vectors(panel);
    slab.out = std::min(slab.vectors * lanes, correlation_.out - slab.first_out);
    slab.bias = bias + unit.group * out_vectors_ * lanes + slab.first_out;
    slab.buffer = memory;
    slab.aside = memory + tile_floats;
    slab.runs = reinterpret_cast<Run*>(memory + 2 * tile_floats);
    for (slab.first_in = 0; slab.first_in < correlation_.in; slab.first_in += in_block_) {
      slab.in = std::min(in_block_, correlation_.in - slab.first_in);
      slab.weights =
          weights + panel_offset(unit.group, panel) + slab.first_in * taps(correlation_) * slab.vectors * lanes;
      slab.cut = cut(slab.in);
      slab.first = slab.first_in == 0;
      slab.last = slab.first_in + slab.in == correlation_.in;
      run_slab(slab, rows, unit);
    }
  }
}

void CorrelationKernel::run_slab(const Slab& slab, const Rows& rows, const Unit& unit) const {
  const bool relu = epilogue_.activation.kind == model::ActivationKind::relu;
  const tensor::Layout& layout = correlation_.dst;
  const std::int64_t channel = unit.group * correlation_.out + slab.first_out;
  float* dst = slab.arguments->dst + layout.offset + unit.n * layout.strides.n + channel * layout.strides.c;
  TileCall call{.src = rows.base(),
                .src_step = correlation_.w.src_step * rows_.pixel,
                .runs = slab.runs,
                .tap_step = slab.in * tiles_.lanes,
                .weights = slab.weights,
                .bias = slab.bias,
                .aside = slab.aside,
                .dst_step = correlation_.w.step * layout.strides.w,
                .tail = slab.out - (slab.vectors - 1) * tiles_.lanes,
                .floor = relu ? 0.0F : -std::numeric_limits<float>::infinity(),
                .first = slab.first,
                .last = slab.last,
                .stream = stream_ && is_aligned(dst)};
  for (std::int64_t d = unit.d.lo; d < unit.d.hi; ++d) {
    for (std::int64_t h = unit.h.lo; h < unit.h.hi; ++h) {
      call.run_count = find_runs(slab, rows, d, h, unit.w.lo);
      call.dst = dst + (correlation_.d.first + d * correlation_.d.step) * layout.strides.d +
                 (correlation_.h.first + h * correlation_.h.step) * layout.strides.h +
                 (correlation_.w.first + unit.w.lo * correlation_.w.step) * layout.strides.w;
      run_row(slab, call, unit.w.hi - unit.w.lo);
    }
  }
}

// Where sums in registers are cut depends on the taps of the window, not on how many of them lie inside the source.
CorrelationKernel::Cut CorrelationKernel::cut(std::int64_t in) const {
  const std::int64_t run_taps = whole_rows() ? static_cast<std::int64_t>(correlation_.w.taps.size()) : 1;
  const std::int64_t terms = std::max<std::int64_t>(run_taps * in, 1);  // of a run
  const std::int64_t runs = std::max<std::int64_t>(taps(correlation_) / std::max<std::int64_t>(run_taps, 1), 1);
  const std::int64_t pieces = ceil_div(2 * terms, 3 * most_terms);
  return {.run_taps = run_taps,
          .steps = slide_ ? in : terms,
          .steps_at_once = ceil_div(slide_ ? in : terms, pieces),
          .taps_at_once = run_taps * ceil_div(runs, ceil_div(runs * terms, most_terms))};
}

std::int64_t CorrelationKernel::find_runs(const Slab& slab, const Rows& rows, std::int64_t d, std::int64_t h,
                                          std::int64_t w) const {
  const auto w_taps = static_cast<std::int64_t>(correlation_.w.taps.size());
  const Cut cut = slab.cut;
  const std::int64_t step_floats = slab.vectors * tiles_.lanes;
  const Range d_taps = taps_inside(correlation_.d, d);
  const Range h_taps = taps_inside(correlation_.h, h);
  std::int64_t count = 0;
  std::int64_t next_cut = 0;
  for (std::int64_t kd = d_taps.lo; kd < d_taps.hi; ++kd) {
    for (std::int64_t kh = h_taps.lo; kh < h_taps.hi; ++kh) {
      const std::int64_t row = (kd * static_cast<std::int64_t>(correlation_.h.taps.size()) + kh) * w_taps;
      for (std::int64_t kw = 0; kw < w_taps; kw += cut.run_taps) {
        const std::int64_t src = rows.offset(correlation_.d.taps[kd].offset + d * correlation_.d.src_step,
                                             correlation_.h.taps[kh].offset + h * correlation_.h.src_step,
                                             correlation_.w.taps[kw].offset + w * correlation_.w.src_step);
        bool apart = row + kw >= next_cut && count > 0;
        while (row + kw >= next_cut) next_cut += cut.taps_at_once;
        for (std::int64_t lo = 0; lo < cut.steps; lo += cut.steps_at_once) {
          slab.runs[count] = {.src = src + slab.first_in + lo,
                              .weights = ((row + kw) * slab.in + lo) * step_floats,
                              .steps = std::min(cut.steps_at_once, cut.steps - lo),
                              .apart = apart};
          ++count;
          apart = true;
        }
      }
    }
  }
  return count;
}

void CorrelationKernel::run_row(const Slab& slab, TileCall call, std::int64_t pixels) const {
  const auto& functions = slide_ ? tiles_.slide : tiles_.correlation[slab.vectors - 1];
  const std::int64_t tiles = ceil_div(pixels, slide_ ? tiles_.slide_rows : tiles_.rows[slab.vectors - 1]);
  const std::int64_t steps = std::accumulate(call.runs, call.runs + call.run_count, std::int64_t{0},
                                             [](std::int64_t sum, const Run& run) { return sum + run.steps; });
  const std::int64_t fetched = steps * slab.ahead->step;
  const float* src = call.src;
  float* dst = call.dst;
  for (std::int64_t index = 0; index < tiles; ++index) {
    const std::int64_t lo = pixels * index / tiles;
    const std::int64_t count = pixels * (index + 1) / tiles - lo;
    call.fetch = *slab.ahead;
    slab.ahead->from += fetched;
    call.src = src + lo * call.src_step;
    call.dst = dst + lo * call.dst_step;
    if (dst_in_place_) {
      functions[count - 1](call);
      continue;
    }
    TileCall aside = call;
    aside.dst = slab.buffer;
    aside.dst_step = slab.vectors * tiles_.lanes;
    functions[count - 1](aside);
    finish_row(slab, slab.buffer, count);
    for (std::int64_t p = 0; p < count; ++p) {
      for (std::int64_t o = 0; o < slab.out; ++o) {
        call.dst[p * call.dst_step + o * correlation_.dst.strides.c] = aside.dst[p * aside.dst_step + o];
      }
    }
  }
  if (dst_in_place_) finish_row(slab, dst, pixels);
}

void CorrelationKernel::finish_row(const Slab& slab, float* dst, std::int64_t pixels) const {
  const model::ActivationKind kind = epilogue_.activation.kind;
  if (!slab.last || kind == model::ActivationKind::identity || kind == model::ActivationKind::relu) return;
  activate({.activation = epilogue_.activation,
            .values = dst,
            .step = dst_in_place_ ? correlation_.w.step * correlation_.dst.strides.w : slab.vectors * tiles_.lanes,
            .pixels = pixels,
            .channels = slab.out});
}

}  // namespace orthant::kernels::direct
