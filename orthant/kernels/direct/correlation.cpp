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

// Weights of one panel and block of channels; stays in the second-level cache beside the source rows.
constexpr std::int64_t panel_floats = 64 * 1024;

// Threads share out panels of weights where each would meet fewer outputs than this.
constexpr std::int64_t shared_outputs = 1024;

// Terms of a sum in a register, about: rounding errors grow with them, and those of sums put aside hardly.
constexpr std::int64_t most_terms = 128;

std::int64_t aligned(std::int64_t floats) { return ceil_div(floats, 16) * 16; }

// Few pixels in a row need more vectors to keep enough sums in flight.
int choose_vectors(const Tiles& tiles, std::int64_t out_vectors, std::int64_t row) {
  const std::int64_t wanted = row <= 4 ? 4 : 2;
  if (out_vectors == 3 && row <= tiles.rows[2]) return 3;
  return static_cast<int>(std::min({wanted, out_vectors, static_cast<std::int64_t>(max_vectors)}));
}

}  // namespace

struct GatherKernel::Part {
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
  float* buffer = nullptr;  ///< for a tile, where dst does not take vectors
};

GatherKernel::GatherKernel(Gather gather, Epilogue epilogue, int threads)
    : gather_(std::move(gather)), epilogue_(epilogue), tiles_(gather_tiles()), threads_(threads) {
  out_vectors_ = ceil_div(gather_.out, tiles_.lanes);
  vectors_ = choose_vectors(tiles_, out_vectors_, gather_.w.count);
  const bool many_panels = outputs(gather_) < shared_outputs && panel_count() >= 4 * threads;
  blocks_ = choose_blocks(gather_, many_panels ? 1 : 4 * threads, false);
  rows_ = plan_rows(gather_, blocks_);
  dst_in_place_ = gather_.dst.strides.c == 1 || gather_.out == 1;

  const std::int64_t per_channel = std::max<std::int64_t>(taps(gather_) * vectors_ * tiles_.lanes, 1);
  const std::int64_t in_blocks =
      dst_in_place_ ? std::clamp<std::int64_t>(ceil_div(gather_.in * per_channel, panel_floats), 1, gather_.in) : 1;
  in_block_ = ceil_div(gather_.in, in_blocks);
  weights_in_place_ = !gather_.transposed && panel_count() == 1 && in_block_ == gather_.in &&
                      gather_.out == out_vectors_ * tiles_.lanes;
  slide_ = can_slide();
  stream_ = dst_in_place_ && in_block_ == gather_.in && gather_.out % tiles_.lanes == 0 &&
            writes_around_cache(gather_.dst, tiles_.lanes);
  const std::int64_t units = std::max<std::int64_t>(block_count(gather_, blocks_), 1);
  if (many_panels || units < 4 * threads)
    panel_splits_ = std::min(panel_count(), ceil_div(4 * threads, many_panels ? 1 : units));
}

bool GatherKernel::whole_rows() const { return rows_.runs_over_w && in_block_ == gather_.in; }

bool GatherKernel::can_slide() const {
  return out_vectors_ == 1 && gather_.w.src_step == 1 && whole_rows() && gather_.w.taps.size() == slide_taps;
}

std::string GatherKernel::variant() const {
  if (slide_) return fmt::format("slide{}x1", tiles_.slide_rows);
  return fmt::format("tile{}x{}", tiles_.rows[vectors_ - 1], vectors_);
}

std::int64_t GatherKernel::panel_count() const { return ceil_div(out_vectors_, vectors_); }

int GatherKernel::panel_vectors(std::int64_t panel) const {
  return static_cast<int>(std::min<std::int64_t>(vectors_, out_vectors_ - panel * vectors_));
}

std::int64_t GatherKernel::panel_offset(std::int64_t group, std::int64_t panel) const {
  return (group * out_vectors_ + panel * vectors_) * tiles_.lanes * taps(gather_) * gather_.in;
}

std::int64_t GatherKernel::thread_floats() const {
  const std::int64_t runs = taps(gather_) * (1 + gather_.in / most_terms);
  const std::int64_t run_floats = aligned(runs * static_cast<std::int64_t>(sizeof(Run) / sizeof(float)));
  return aligned(row_floats(rows_)) + run_floats + 2 * tile_floats;
}

std::int64_t GatherKernel::scratch_floats() const {
  const std::int64_t weights = weights_in_place_ ? 0 : aligned(panel_offset(gather_.groups, 0));
  return weights + aligned(gather_.groups * out_vectors_ * tiles_.lanes) + threads_ * thread_floats();
}

void GatherKernel::prepare(const Arguments& arguments, int thread) const {
  const std::int64_t padded = out_vectors_ * tiles_.lanes;
  float* bias = arguments.scratch + (weights_in_place_ ? 0 : aligned(panel_offset(gather_.groups, 0)));
  if (thread == 0) {
    for (std::int64_t g = 0; g < gather_.groups; ++g) {
      std::fill_n(bias + g * padded, padded, 0.0F);
      if (epilogue_.bias) std::copy_n(arguments.bias + g * gather_.out, gather_.out, bias + g * padded);
    }
  }
  if (weights_in_place_) return;
  const std::int64_t panels = panel_count();
  for (std::int64_t index = thread; index < gather_.groups * panels; index += threads_) {
    pack_panel(arguments.weights, arguments.scratch, index / panels, index % panels);
  }
}

void GatherKernel::pack_panel(const float* weights, float* to, std::int64_t group, std::int64_t panel) const {
  to += panel_offset(group, panel);
  const std::int64_t width = panel_vectors(panel) * tiles_.lanes;
  const std::int64_t first_out = panel * vectors_ * tiles_.lanes;
  const tensor::Extent3& window = gather_.window;
  weights += group * window.d * window.h * window.w * gather_.in * gather_.out;
  matrix::PackCall call{.step = gather_.transposed ? gather_.in : gather_.out,
                        .columns = std::min(width, gather_.out - first_out),
                        .to = to,
                        .panel = width};
  for (std::int64_t first_in = 0; first_in < gather_.in; first_in += in_block_) {
    call.depth = std::min(in_block_, gather_.in - first_in);
    const std::int64_t first =
        gather_.transposed ? first_out * gather_.in + first_in : first_in * gather_.out + first_out;
    for (const Tap& d : gather_.d.taps) {
      for (const Tap& h : gather_.h.taps) {
        for (const Tap& w : gather_.w.taps) {
          const std::int64_t tap = (d.index * window.h + h.index) * window.w + w.index;
          call.from = weights + tap * gather_.in * gather_.out + first;
          gather_.transposed ? matrix::pack_transposed(call) : matrix::pack(call);
          call.to += call.depth * width;
        }
      }
    }
  }
}

void GatherKernel::run(const Arguments& arguments, int thread) const {
  float* memory = arguments.scratch + (scratch_floats() - threads_ * thread_floats()) + thread * thread_floats();
  Rows rows(gather_, rows_, arguments.src, memory);
  const std::int64_t units = block_count(gather_, blocks_);
  const std::int64_t items = units * panel_splits_;
  const std::int64_t last = items * (thread + 1) / threads_;
  for (std::int64_t item = items * thread / threads_; item < last; ++item) {
    const std::int64_t split = item / units;
    const Range panels{panel_count() * split / panel_splits_, panel_count() * (split + 1) / panel_splits_};
    const Unit unit = unit_at(gather_, blocks_, item % units);
    rows.load(unit);
    Fetch ahead;
    if (item + 1 < last) {
      const Unit next = unit_at(gather_, blocks_, (item + 1) % units);
      ahead = {.from = rows.start_of(next), .step = fetch_step(rows.floats_of(next), unit, panels)};
    }
    run_unit(arguments, rows, unit, panels, ahead, memory + aligned(row_floats(rows_)));
  }
  if (stream_) hwy::FlushStream();
}

std::int64_t GatherKernel::fetch_step(std::int64_t floats, const Unit& unit, Range panels) const {
  const std::int64_t tiles = (unit.d.hi - unit.d.lo) * (unit.h.hi - unit.h.lo) * row_tiles(unit.w.hi - unit.w.lo);
  const std::int64_t steps = (panels.hi - panels.lo) * tiles * taps(gather_) * gather_.in / (slide_ ? slide_taps : 1);
  return std::min(ceil_div(floats, std::max<std::int64_t>(steps, 1)), line_floats);
}

std::int64_t GatherKernel::row_tiles(std::int64_t pixels) const {
  return ceil_div(pixels, slide_ ? tiles_.slide_rows : tiles_.rows[vectors_ - 1]);
}

void GatherKernel::run_unit(const Arguments& arguments, Rows& rows, const Unit& unit, Range panels, Fetch ahead,
                            float* memory) const {
  const std::int64_t lanes = tiles_.lanes;
  const float* bias = arguments.scratch + (weights_in_place_ ? 0 : aligned(panel_offset(gather_.groups, 0)));
  const float* weights = weights_in_place_ ? arguments.weights : arguments.scratch;
  for (std::int64_t panel = panels.lo; panel < panels.hi; ++panel) {
    Part part{.arguments = &arguments, .ahead = &ahead, .first_out = panel * vectors_ * lanes};
    part.vectors = panel_vectors(panel);
    part.out = std::min(part.vectors * lanes, gather_.out - part.first_out);
    part.bias = bias + unit.group * out_vectors_ * lanes + part.first_out;
    part.buffer = memory;
    part.aside = memory + tile_floats;
    part.runs = reinterpret_cast<Run*>(memory + 2 * tile_floats);
    for (part.first_in = 0; part.first_in < gather_.in; part.first_in += in_block_) {
      part.in = std::min(in_block_, gather_.in - part.first_in);
      part.weights = weights + panel_offset(unit.group, panel) + part.first_in * taps(gather_) * part.vectors * lanes;
      part.cut = cut(part.in);
      part.first = part.first_in == 0;
      part.last = part.first_in + part.in == gather_.in;
      run_part(part, rows, unit);
    }
  }
}

void GatherKernel::run_part(const Part& part, const Rows& rows, const Unit& unit) const {
  const bool relu = epilogue_.activation.kind == model::ActivationKind::relu;
  const tensor::Layout& layout = gather_.dst;
  const std::int64_t channel = unit.group * gather_.out + part.first_out;
  float* dst = part.arguments->dst + layout.offset + unit.n * layout.strides.n + channel * layout.strides.c;
  TileCall call{.src = rows.base(),
                .src_step = gather_.w.src_step * rows_.pixel,
                .runs = part.runs,
                .tap_step = part.in * tiles_.lanes,
                .weights = part.weights,
                .bias = part.bias,
                .aside = part.aside,
                .dst_step = gather_.w.step * layout.strides.w,
                .tail = part.out - (part.vectors - 1) * tiles_.lanes,
                .floor = relu ? 0.0F : -std::numeric_limits<float>::infinity(),
                .first = part.first,
                .last = part.last,
                .stream = stream_ && is_aligned(dst)};
  for (std::int64_t d = unit.d.lo; d < unit.d.hi; ++d) {
    for (std::int64_t h = unit.h.lo; h < unit.h.hi; ++h) {
      call.run_count = find_runs(part, rows, d, h, unit.w.lo);
      call.dst = dst + (gather_.d.first + d * gather_.d.step) * layout.strides.d +
                 (gather_.h.first + h * gather_.h.step) * layout.strides.h +
                 (gather_.w.first + unit.w.lo * gather_.w.step) * layout.strides.w;
      run_row(part, call, unit.w.hi - unit.w.lo);
    }
  }
}

// Sums in registers are cut where the taps say so, however many of them lie inside.
GatherKernel::Cut GatherKernel::cut(std::int64_t in) const {
  const std::int64_t run_taps = whole_rows() ? static_cast<std::int64_t>(gather_.w.taps.size()) : 1;
  const std::int64_t terms = std::max<std::int64_t>(run_taps * in, 1);  // of a run
  const std::int64_t runs = std::max<std::int64_t>(taps(gather_) / std::max<std::int64_t>(run_taps, 1), 1);
  const std::int64_t pieces = ceil_div(2 * terms, 3 * most_terms);
  return {.run_taps = run_taps,
          .steps = slide_ ? in : terms,
          .piece = ceil_div(slide_ ? in : terms, pieces),
          .taps_at_once = run_taps * ceil_div(runs, ceil_div(runs * terms, most_terms))};
}

std::int64_t GatherKernel::find_runs(const Part& part, const Rows& rows, std::int64_t d, std::int64_t h,
                                     std::int64_t w) const {
  const auto w_taps = static_cast<std::int64_t>(gather_.w.taps.size());
  const Cut cut = part.cut;
  const std::int64_t step_floats = part.vectors * tiles_.lanes;
  const Range d_taps = taps_inside(gather_.d, d);
  const Range h_taps = taps_inside(gather_.h, h);
  std::int64_t count = 0;
  std::int64_t next_cut = 0;
  for (std::int64_t kd = d_taps.lo; kd < d_taps.hi; ++kd) {
    for (std::int64_t kh = h_taps.lo; kh < h_taps.hi; ++kh) {
      const std::int64_t row = (kd * static_cast<std::int64_t>(gather_.h.taps.size()) + kh) * w_taps;
      for (std::int64_t kw = 0; kw < w_taps; kw += cut.run_taps) {
        const std::int64_t src = rows.offset(gather_.d.taps[kd].offset + d * gather_.d.src_step,
                                             gather_.h.taps[kh].offset + h * gather_.h.src_step,
                                             gather_.w.taps[kw].offset + w * gather_.w.src_step);
        bool apart = row + kw >= next_cut && count > 0;
        while (row + kw >= next_cut) next_cut += cut.taps_at_once;
        for (std::int64_t lo = 0; lo < cut.steps; lo += cut.piece) {
          part.runs[count] = {.src = src + part.first_in + lo,
                              .weights = ((row + kw) * part.in + lo) * step_floats,
                              .steps = std::min(cut.piece, cut.steps - lo),
                              .apart = apart};
          ++count;
          apart = true;
        }
      }
    }
  }
  return count;
}

void GatherKernel::run_row(const Part& part, TileCall call, std::int64_t pixels) const {
  const auto& functions = slide_ ? tiles_.slide : tiles_.gather[part.vectors - 1];
  const std::int64_t tiles = ceil_div(pixels, slide_ ? tiles_.slide_rows : tiles_.rows[part.vectors - 1]);
  const std::int64_t steps = std::accumulate(call.runs, call.runs + call.run_count, std::int64_t{0},
                                             [](std::int64_t sum, const Run& run) { return sum + run.steps; });
  const std::int64_t fetched = steps * part.ahead->step;
  const float* src = call.src;
  float* dst = call.dst;
  for (std::int64_t index = 0; index < tiles; ++index) {
    const std::int64_t lo = pixels * index / tiles;
    const std::int64_t count = pixels * (index + 1) / tiles - lo;
    call.fetch = *part.ahead;
    part.ahead->from += fetched;
    call.src = src + lo * call.src_step;
    call.dst = dst + lo * call.dst_step;
    if (dst_in_place_) {
      functions[count - 1](call);
      continue;
    }
    TileCall aside = call;
    aside.dst = part.buffer;
    aside.dst_step = part.vectors * tiles_.lanes;
    functions[count - 1](aside);
    finish_row(part, part.buffer, count);
    for (std::int64_t p = 0; p < count; ++p) {
      for (std::int64_t o = 0; o < part.out; ++o) {
        call.dst[p * call.dst_step + o * gather_.dst.strides.c] = aside.dst[p * aside.dst_step + o];
      }
    }
  }
  if (dst_in_place_) finish_row(part, dst, pixels);
}

void GatherKernel::finish_row(const Part& part, float* dst, std::int64_t pixels) const {
  const model::ActivationKind kind = epilogue_.activation.kind;
  if (!part.last || kind == model::ActivationKind::identity || kind == model::ActivationKind::relu) return;
  activate({.activation = epilogue_.activation,
            .values = dst,
            .step = dst_in_place_ ? gather_.w.step * gather_.dst.strides.w : part.vectors * tiles_.lanes,
            .pixels = pixels,
            .channels = part.out});
}

}  // namespace orthant::kernels::direct
