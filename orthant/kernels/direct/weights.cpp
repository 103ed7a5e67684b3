#include "orthant/kernels/direct/weights.hpp"

#include "orthant/base/format.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/streaming.hpp"

#include <hwy/cache_control.h>

#include <algorithm>

namespace orthant::kernels::direct {
namespace {

// About how many terms are summed in a register: the rounding error grows with this number, and hardly with the number
// of sums added in memory.
constexpr std::int64_t most_terms = 64;
// Longer rows are cut into pieces, each of which costs a sliding tile two pixels.
constexpr std::int64_t longest_row = 96, longest_slide = 128;
// Partial weights of a thread up to this size stay in the cache while it walks its pixels.
constexpr std::int64_t partial_limit_floats = 64 * 1024;

std::int64_t aligned(std::int64_t floats) { return ceil_div(floats, 16) * 16; }
Range share(std::int64_t count, int thread, int threads) {
  return {count * thread / threads, count * (thread + 1) / threads};
}
std::int64_t length(const Range& range) { return range.hi - range.lo; }

}  // namespace

WeightsKernel::WeightsKernel(Correlation correlation, bool bias, bool accumulate, int threads)
    : correlation_(std::move(correlation)),
      bias_(bias),
      accumulate_(accumulate),
      tiles_(weight_tiles()),
      threads_(threads) {
  const std::int64_t out_vectors = ceil_div(correlation_.out, tiles_.lanes);
  vectors_ = static_cast<int>(std::min<std::int64_t>(out_vectors == 3 ? 3 : 2, out_vectors));
  blocks_ = choose_blocks(correlation_, 4 * threads, true);
  rows_ = plan_rows(correlation_, blocks_);
  diff_in_place_ = correlation_.dst.strides.c == 1 || correlation_.out == 1;
  panels_ = ceil_div(out_vectors, vectors_);
  stack_ = can_stack() ? stack_rows : 1;
  slide_ = stack_ == 1 && out_vectors == 1 && correlation_.w.src_step == 1 && rows_.runs_over_w &&
           correlation_.w.taps.size() == slide_taps && correlation_.in > 1;
  chunks_ = ceil_div(slide_ ? correlation_.in : run_length(), slide_ ? tiles_.slide_rows : tiles_.rows[vectors_ - 1]);
  items_ = panels_ * run_count() * chunks_;
  share_pixels_ = threads > 1 && (weights_floats() <= partial_limit_floats || items_ < 8 * threads);
  if (!share_pixels_) {
    blocks_ = choose_blocks(correlation_, 1, true);
    rows_ = plan_rows(correlation_, blocks_);
  }
  stream_ = !share_pixels_ && !accumulate && block_count(correlation_, blocks_) == correlation_.groups &&
            writes_around_cache(weights_floats(), correlation_.out, tiles_.lanes);
}

std::string WeightsKernel::variant() const {
  const std::string tile = slide_       ? fmt::format("slide{}x{}", tiles_.slide_rows, slide_taps)
                           : stack_ > 1 ? fmt::format("stack{}x{}x{}", stack_rows, run_length(), vectors_)
                                        : fmt::format("outer{}x{}", tiles_.rows[vectors_ - 1], vectors_);
  return fmt::format("{}:{}", tile, share_pixels_ ? "pixels" : "weights");
}

bool WeightsKernel::can_stack() const {
  const std::vector<Tap>& taps_h = correlation_.h.taps;
  if (!rows_.packed || vectors_ > 2 || run_length() > WeightTiles::stack_length) return false;
  return taps_h.size() % stack_rows == 0;
}

std::int64_t WeightsKernel::run_count() const {
  const std::size_t rows = correlation_.d.taps.size() * correlation_.h.taps.size() / stack_;
  return static_cast<std::int64_t>(rows * (rows_.runs_over_w ? 1 : correlation_.w.taps.size()));
}

std::int64_t WeightsKernel::run_length() const {
  return rows_.runs_over_w ? static_cast<std::int64_t>(correlation_.w.taps.size()) * correlation_.in : correlation_.in;
}

std::int64_t WeightsKernel::weights_floats() const {
  return correlation_.groups * taps(correlation_) * correlation_.in * correlation_.out;
}

std::int64_t WeightsKernel::partial_floats() const {
  return aligned(channels()) + (share_pixels_ ? aligned(weights_floats()) : 0);
}

std::int64_t WeightsKernel::thread_floats() const {
  const std::int64_t outputs = blocks_.d * blocks_.h * blocks_.w;
  const std::int64_t pairs =
      aligned(blocks_.d * blocks_.h * static_cast<std::int64_t>(sizeof(RowPair) / sizeof(float)));
  return aligned(row_floats(rows_)) + pairs + (diff_in_place_ ? 0 : aligned(outputs * correlation_.out));
}

std::int64_t WeightsKernel::scratch_floats() const { return threads_ * (partial_floats() + thread_floats()); }

float* WeightsKernel::partial(const Arguments& arguments, int thread) const {
  return arguments.scratch + thread * partial_floats();
}

WeightsKernel::Memory WeightsKernel::memory(const Arguments& arguments, int thread) const {
  float* start = arguments.scratch + threads_ * partial_floats() + thread * thread_floats();
  Memory memory{.rows = start, .diff = start + aligned(row_floats(rows_))};
  const std::int64_t outputs = blocks_.d * blocks_.h * blocks_.w;
  memory.pairs = reinterpret_cast<RowPair*>(memory.diff + (diff_in_place_ ? 0 : aligned(outputs * correlation_.out)));
  return memory;
}

void WeightsKernel::prepare(const Arguments& arguments, int thread) const {
  std::fill_n(partial(arguments, thread), partial_floats(), 0.0F);
  if (accumulate_ || (!share_pixels_ && block_count(correlation_, blocks_) > 0)) return;
  const Range mine = share(weights_floats(), thread, threads_);
  std::fill_n(arguments.diff_weights + mine.lo, length(mine), 0.0F);
}

void WeightsKernel::run(const Arguments& arguments, int thread) const {
  const Memory own = memory(arguments, thread);
  Rows rows(correlation_, rows_, arguments.src, own.rows);
  float* bias = partial(arguments, thread);
  float* weights = share_pixels_ ? bias + aligned(channels()) : arguments.diff_weights;
  const std::int64_t units = block_count(correlation_, blocks_);
  const Range shared = share(units, thread, threads_);
  const Range walked = share_pixels_ ? shared : Range{0, units};
  const Range items = share_pixels_ ? Range{0, items_} : share(items_, thread, threads_);
  for (std::int64_t index = walked.lo; index < walked.hi; ++index) {
    const Unit unit = unit_at(correlation_, blocks_, index);
    const Diff diff = load_diff(arguments, unit, own.diff);
    rows.load(unit);
    Ahead ahead;
    if (index + 1 < walked.hi) {
      ahead = look_ahead(arguments, rows, unit_at(correlation_, blocks_, index + 1), own, length(items));
    }
    run_unit(rows, diff, unit, items, own, weights, ahead);
    if (bias_ && index >= shared.lo && index < shared.hi) sum_bias(diff, unit, bias + unit.group * correlation_.out);
  }
  if (stream_) hwy::FlushStream();
}

WeightsKernel::Ahead WeightsKernel::look_ahead(const Arguments& arguments, const Rows& rows, const Unit& next,
                                               const Memory& memory, std::int64_t tiles) const {
  const std::int64_t pixels = length(next.d) * length(next.h) * length(next.w);
  const std::int64_t steps = std::max<std::int64_t>(tiles * pixels, 1);
  Ahead ahead;
  ahead.src = {.from = rows.start_of(next), .step = std::min(ceil_div(rows.floats_of(next), steps), line_floats)};
  if (diff_in_place_) {
    const Diff diff = load_diff(arguments, next, memory.diff);
    ahead.diff = {.from = diff.base, .step = std::min(ceil_div(pixels * diff.w, steps), line_floats)};
  }
  return ahead;
}

WeightsKernel::Diff WeightsKernel::load_diff(const Arguments& arguments, const Unit& unit, float* memory) const {
  const tensor::Shape& strides = correlation_.dst.strides;
  const float* from = arguments.diff_dst + correlation_.dst.offset + unit.n * strides.n +
                      unit.group * correlation_.out * strides.c + unit.d.lo * strides.d + unit.h.lo * strides.h +
                      unit.w.lo * strides.w;
  if (diff_in_place_) return {.base = from, .d = strides.d, .h = strides.h, .w = strides.w};
  Diff diff{.base = memory, .w = correlation_.out};
  diff.h = diff.w * length(unit.w);
  diff.d = diff.h * length(unit.h);
  for (std::int64_t d = 0; d < length(unit.d); ++d) {
    for (std::int64_t h = 0; h < length(unit.h); ++h) {
      for (std::int64_t w = 0; w < length(unit.w); ++w) {
        const float* pixel = from + d * strides.d + h * strides.h + w * strides.w;
        float* to = memory + d * diff.d + h * diff.h + w * diff.w;
        for (std::int64_t c = 0; c < correlation_.out; ++c) to[c] = pixel[c * strides.c];
      }
    }
  }
  return diff;
}

void WeightsKernel::run_unit(const Rows& rows, const Diff& diff, const Unit& unit, Range items, const Memory& memory,
                             float* weights, const Ahead& ahead) const {
  const std::int64_t pixels = length(unit.d) * length(unit.h) * length(unit.w);
  const std::int64_t h_taps = static_cast<std::int64_t>(correlation_.h.taps.size()) / stack_;
  const auto w_taps = static_cast<std::int64_t>(correlation_.w.taps.size());
  const std::int64_t runs_per_row = rows_.runs_over_w ? 1 : w_taps;
  const std::int64_t src_row =
      stack_ > 1 ? (correlation_.h.taps[1].offset - correlation_.h.taps[0].offset) * rows_.row : std::int64_t{0};
  // The first unit of a group starts the sums; partial sums have been set to zero before.
  const bool add = share_pixels_ || accumulate_ || unit.n > 0 || unit.d.lo > 0 || unit.h.lo > 0 || unit.w.lo > 0;
  std::int64_t row_held = -1;
  std::int64_t pairs = 0;
  weights += unit.group * taps(correlation_) * correlation_.in * correlation_.out;
  for (std::int64_t item = items.lo; item < items.hi; ++item) {
    const std::int64_t chunk = item % chunks_;
    const std::int64_t run = item / chunks_ % run_count();
    const std::int64_t panel = item / chunks_ / run_count();
    const std::int64_t row = run / runs_per_row;
    const std::int64_t kw = run % runs_per_row;
    if (row != row_held) {
      pairs = find_pairs(rows, diff, unit, correlation_.d.taps[row / h_taps],
                         correlation_.h.taps[row % h_taps * stack_], memory.pairs);
      row_held = row;
    }
    const Range part =
        share(slide_ ? correlation_.in : run_length(), static_cast<int>(chunk), static_cast<int>(chunks_));
    const std::int64_t first_out = panel * vectors_ * tiles_.lanes;
    const std::int64_t out = std::min<std::int64_t>(vectors_ * tiles_.lanes, correlation_.out - first_out);
    const std::int64_t vectors = ceil_div(out, tiles_.lanes);
    const std::int64_t from_first = (correlation_.w.taps[kw].offset - correlation_.w.taps[0].offset) * rows_.pixel;
    const std::int64_t weight_row = (row * stack_ * w_taps + kw) * correlation_.in + part.lo;
    const std::int64_t done = (item - items.lo) * pixels;
    const WeightTileFunction* functions = slide_       ? tiles_.slide.data()
                                          : stack_ > 1 ? tiles_.stack[vectors - 1].data()
                                                       : tiles_.outer[vectors - 1].data();
    WeightTileCall call{.src = rows.base() + from_first + part.lo,
                        .src_step = correlation_.w.src_step * rows_.pixel,
                        .diff = diff.base + first_out,
                        .diff_step = diff.w,
                        .rows = memory.pairs,
                        .pixels = length(unit.w),
                        .weights = weights + weight_row * correlation_.out + first_out,
                        .weights_step = correlation_.out,
                        .src_row = src_row,
                        .tap_step = slide_ ? correlation_.in : w_taps * correlation_.in,
                        .tail = out - (vectors - 1) * tiles_.lanes,
                        .add = add,
                        .fetch_src = {.from = ahead.src.from + done * ahead.src.step, .step = ahead.src.step},
                        .fetch_diff = {.from = ahead.diff.from + done * ahead.diff.step, .step = ahead.diff.step}};
    run_tile(functions[length(part) - 1], call, pairs);
  }
}

// Every call makes one partial sum: over a few short rows, or over a piece of a long one.
void WeightsKernel::run_tile(WeightTileFunction function, WeightTileCall call, std::int64_t rows) const {
  const std::int64_t pixels = call.pixels;
  const std::int64_t most_rows = std::max<std::int64_t>(1, most_terms / pixels);
  const auto pieces = static_cast<int>(ceil_div(pixels, slide_ ? longest_slide : longest_row));
  const float* const src = call.src;
  const float* const diff = call.diff;
  call.stream = stream_ && rows <= most_rows && pieces == 1 && is_aligned(call.weights);
  do {
    call.row_count = std::min(rows, most_rows);
    for (int piece = 0; piece < pieces; ++piece) {
      const Range part = share(pixels, piece, pieces);
      call.pixels = length(part);
      call.src = src + part.lo * call.src_step;
      call.diff = diff + part.lo * call.diff_step;
      function(call);
      call.fetch_src.from += call.row_count * call.pixels * call.fetch_src.step;
      call.fetch_diff.from += call.row_count * call.pixels * call.fetch_diff.step;
      call.add = true;
    }
    call.rows += call.row_count;
    rows -= call.row_count;
  } while (rows > 0);
}

std::int64_t WeightsKernel::find_pairs(const Rows& rows, const Diff& diff, const Unit& unit, const Tap& d_tap,
                                       const Tap& h_tap, RowPair* pairs) const {
  const Range d_inside = outputs_inside(correlation_.d, d_tap, unit.d);
  const Range h_inside = stack_ > 1 ? unit.h : outputs_inside(correlation_.h, h_tap, unit.h);
  const std::int64_t w_cell = correlation_.w.taps[0].offset + unit.w.lo * correlation_.w.src_step;
  std::int64_t count = 0;
  for (std::int64_t d = d_inside.lo; d < d_inside.hi; ++d) {
    for (std::int64_t h = h_inside.lo; h < h_inside.hi; ++h) {
      pairs[count++] = {.src = rows.offset(d_tap.offset + d * correlation_.d.src_step,
                                           h_tap.offset + h * correlation_.h.src_step, w_cell),
                        .diff = (d - unit.d.lo) * diff.d + (h - unit.h.lo) * diff.h};
    }
  }
  return count;
}

void WeightsKernel::sum_bias(const Diff& diff, const Unit& unit, float* sums) const {
  for (std::int64_t d = 0; d < length(unit.d); ++d) {
    for (std::int64_t h = 0; h < length(unit.h); ++h) {
      tiles_.pixel_sum({.diff = diff.base + d * diff.d + h * diff.h,
                        .diff_step = diff.w,
                        .pixels = length(unit.w),
                        .channels = correlation_.out,
                        .sums = sums});
    }
  }
}

void WeightsKernel::reduce(const Arguments& arguments, int thread) const {
  if (share_pixels_) {
    const Range mine = share(weights_floats(), thread, threads_);
    for (int other = 0; other < threads_; ++other) {
      const float* from = partial(arguments, other) + aligned(channels());
      for (std::int64_t k = mine.lo; k < mine.hi; ++k) arguments.diff_weights[k] += from[k];
    }
  }
  if (!bias_ || thread != 0) return;
  if (!accumulate_) std::fill_n(arguments.diff_bias, channels(), 0.0F);
  for (int other = 0; other < threads_; ++other) {
    const float* from = partial(arguments, other);
    for (std::int64_t c = 0; c < channels(); ++c) arguments.diff_bias[c] += from[c];
  }
}

}  // namespace orthant::kernels::direct
