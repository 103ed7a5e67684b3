#include "orthant/kernels/pool/peaks.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orthant::kernels::pool {
namespace {

using tensor::Shape;

constexpr float nothing = -std::numeric_limits<float>::infinity();
constexpr std::int64_t nowhere = model::peak_places * (model::peak_places - 1);

/// An item and its place in the whole tensor.
struct Peak {
  float item = nothing;
  std::int64_t place = nowhere;
};

/// The first of equal items wins, NaN wins over all.
bool wins(const Peak& a, const Peak& b) {
  const bool equal = a.item == b.item || (std::isnan(a.item) && std::isnan(b.item));
  return equal ? a.place < b.place : a.item > b.item || std::isnan(a.item);
}

/// The numbers of peaks are `step` items apart.
Peak read(const float* numbers, std::int64_t step) {
  return {.item = numbers[0],
          .place = static_cast<std::int64_t>(numbers[step]) +
                   static_cast<std::int64_t>(numbers[2 * step]) * model::peak_places};
}

void write(const Peak& peak, float* numbers, std::int64_t step) {
  numbers[0] = peak.item;
  numbers[step] = static_cast<float>(peak.place % model::peak_places);
  numbers[2 * step] = static_cast<float>(peak.place / model::peak_places);
}

void check_channels(const tensor::Layout& layout) {
  if (layout.extents.c > 1 && layout.strides.c != 1)
    base::fail(base::Exit::internal, "pooling got channels that are not contiguous");
}

/// Rows of cells side by side in w, of one sample.
struct Rows {
  tensor::Layout layout;

  [[nodiscard]] std::int64_t count() const { return layout.extents.d * layout.extents.h; }
  [[nodiscard]] std::int64_t offset(std::int64_t n, std::int64_t row) const {
    const Shape& step = layout.strides;
    return layout.offset + n * step.n + row / layout.extents.h * step.d + row % layout.extents.h * step.h;
  }
};

class PeaksForward final : public Primitive {
 public:
  PeaksForward(const model::PeaksTask& task, int threads)
      : task_(task), rows_{task.src}, team_(team_for(tensor::volume(task.src.extents), threads)) {
    check_channels(task.src);
    const Shape& src = task.src.extents;
    if (base::checked_product({src.d, src.h, src.w}) > std::numeric_limits<std::int32_t>::max())
      base::fail(base::Exit::bad_data, "a global_max_pool over {} cells; at most 2147483647 on a rank, cut it",
                 base::checked_product({src.d, src.h, src.w}));
  }

  [[nodiscard]] std::string name() const override { return "orthant:peaks:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return team_ * bytes_of_thread(); }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const auto* src = static_cast<const float*>(arguments[at::peaks_forward::src]);
    auto* dst = static_cast<float*>(arguments[at::peaks_forward::dst]);
    for (std::int64_t n = 0; n < task_.src.extents.n; ++n) {
      run_team(team_, [&](int thread, int team) { find(src, n, thread, team, scratch); });
      for (std::int64_t c = 0; c < task_.src.extents.c; ++c) {
        Peak peak;
        for (int thread = 0; thread < team_; ++thread) {
          const Peak found = peak_of(scratch, thread, c);
          if (wins(found, peak)) peak = found;
        }
        const tensor::Layout& to = task_.dst;
        write(peak, dst + to.offset + n * to.strides.n + c * to.strides.c, to.strides.w);
      }
    }
  }

 private:
  /// Threads write to cache lines of their own.
  [[nodiscard]] std::int64_t bytes_of_thread() const {
    return (2 * task_.src.extents.c * std::int64_t{sizeof(float)} + 63) / 64 * 64;
  }
  [[nodiscard]] Peaks peaks_of(void* scratch, int thread) const {
    auto* items = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + thread * bytes_of_thread());
    return {.items = items, .pixels = reinterpret_cast<std::int32_t*>(items + task_.src.extents.c)};
  }

  void find(const float* src, std::int64_t n, int thread, int team, void* scratch) const {
    const Shape& extents = task_.src.extents;
    const Peaks peaks = peaks_of(scratch, thread);
    std::fill_n(peaks.items, extents.c, nothing);
    std::fill_n(peaks.pixels, extents.c, -1);
    for (std::int64_t row = share(rows_.count(), thread, team); row < share(rows_.count(), thread + 1, team); ++row) {
      const float* at = src + rows_.offset(n, row);
      // Where all items are -infinity the first one is the largest, too.
      if (peaks.pixels[0] < 0) start(peaks, at, row * extents.w);
      find_peaks(peaks, at, task_.src.strides.w, static_cast<std::int32_t>(row * extents.w), extents.w, extents.c);
    }
  }

  void start(const Peaks& peaks, const float* first, std::int64_t pixel) const {
    std::copy_n(first, task_.src.extents.c, peaks.items);
    std::fill_n(peaks.pixels, task_.src.extents.c, static_cast<std::int32_t>(pixel));
  }

  [[nodiscard]] Peak peak_of(void* scratch, int thread, std::int64_t c) const {
    const Peaks peaks = peaks_of(scratch, thread);
    const std::int64_t pixel = peaks.pixels[c];
    if (pixel < 0) return {};
    const Shape& extents = task_.src.extents;
    const std::int64_t w = pixel % extents.w + task_.first_src.w, h = pixel / extents.w % extents.h + task_.first_src.h;
    const std::int64_t d = pixel / extents.w / extents.h + task_.first_src.d;
    return {.item = peaks.items[c], .place = (d * task_.global_src.h + h) * task_.global_src.w + w};
  }

  model::PeaksTask task_;
  Rows rows_;
  int team_;
};

class PeaksBackward final : public Primitive {
 public:
  PeaksBackward(const model::PeaksTask& task, int threads)
      : task_(task), rows_{task.src}, team_(team_for(tensor::volume(task.src.extents), threads)) {
    check_channels(task.src);
    if (!tensor::is_given(task_.diff_dst)) task_.diff_dst = task_.dst;
  }

  [[nodiscard]] std::string name() const override { return "orthant:peaks:scalar"; }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    const auto* diff = static_cast<const float*>(arguments[at::peaks_backward::diff_dst]);
    const auto* peaks = static_cast<const float*>(arguments[at::peaks_backward::dst]);
    auto* diff_src = static_cast<float*>(arguments[at::peaks_backward::diff_src]);
    const Shape& extents = task_.src.extents;
    run_team(team_, [&](int thread, int team) {
      const std::int64_t rows = extents.n * rows_.count();
      for (std::int64_t i = share(rows, thread, team); i < share(rows, thread + 1, team); ++i)
        clear_row(diff_src + rows_.offset(i / rows_.count(), i % rows_.count()));
    });
    for (std::int64_t n = 0; n < extents.n; ++n) {
      for (std::int64_t c = 0; c < extents.c; ++c) {
        const tensor::Layout &at = task_.dst, &from = task_.diff_dst;
        const Peak peak = read(peaks + at.offset + n * at.strides.n + c * at.strides.c, at.strides.w);
        diff_src[item(n, c, peak.place)] = diff[from.offset + n * from.strides.n + c * from.strides.c];
      }
    }
  }

 private:
  void clear_row(float* row) const {
    const std::int64_t channels = task_.src.extents.c, step = task_.src.strides.w;
    if (step == channels) {
      std::fill_n(row, channels * task_.src.extents.w, 0.0F);
      return;
    }
    for (std::int64_t w = 0; w < task_.src.extents.w; ++w) std::fill_n(row + w * step, channels, 0.0F);
  }

  [[nodiscard]] std::int64_t item(std::int64_t n, std::int64_t c, std::int64_t place) const {
    const Shape& step = task_.src.strides;
    const std::int64_t w = place % task_.global_src.w - task_.first_src.w;
    const std::int64_t h = place / task_.global_src.w % task_.global_src.h - task_.first_src.h;
    const std::int64_t d = place / task_.global_src.w / task_.global_src.h - task_.first_src.d;
    return task_.src.offset + n * step.n + c * step.c + d * step.d + h * step.h + w * step.w;
  }

  model::PeaksTask task_;
  Rows rows_;
  int team_;
};

class HighestPeak final : public Primitive {
 public:
  explicit HighestPeak(const model::HighestPeakTask& task) : task_(task) {}

  [[nodiscard]] std::string name() const override { return "orthant:highest_peak:scalar"; }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    for (std::int64_t n = 0; n < task_.src.extents.n; ++n) {
      for (std::int64_t c = 0; c < task_.src.extents.c; ++c)
        task_.pass == model::Pass::forward ? find(arguments, n, c) : spread(arguments, n, c);
    }
  }

 private:
  void find(std::span<void* const> arguments, std::int64_t n, std::int64_t c) const {
    const auto* src = static_cast<const float*>(arguments[at::highest_peak_forward::src]);
    static_cast<float*>(arguments[at::highest_peak_forward::dst])[item(task_.dst, {n, c, 0, 0, 0})] =
        src[item(task_.src, highest(src, n, c))];
  }

  void spread(std::span<void* const> arguments, std::int64_t n, std::int64_t c) const {
    const auto* diff = static_cast<const float*>(arguments[at::highest_peak_backward::diff_dst]);
    const auto* src = static_cast<const float*>(arguments[at::highest_peak_backward::src]);
    auto* diff_src = static_cast<float*>(arguments[at::highest_peak_backward::diff_src]);
    const tensor::Layout& to = tensor::is_given(task_.diff_src) ? task_.diff_src : task_.src;
    for_each_number(n, c, [&](const Shape& at) { diff_src[item(to, at)] = 0; });
    diff_src[item(to, highest(src, n, c))] = diff[item(task_.dst, {n, c, 0, 0, 0})];
  }

  static std::int64_t item(const tensor::Layout& layout, const Shape& at) {
    const Shape& step = layout.strides;
    return layout.offset + at.n * step.n + at.c * step.c + at.d * step.d + at.h * step.h + at.w * step.w;
  }

  template <class Visit>
  void for_each_number(std::int64_t n, std::int64_t c, Visit visit) const {
    const Shape& extents = task_.src.extents;
    for (Shape at{n, c, 0, 0, 0}; at.d < extents.d; ++at.d) {
      for (at.h = 0; at.h < extents.h; ++at.h) {
        for (at.w = 0; at.w < extents.w; ++at.w) visit(at);
      }
    }
  }

  /// Where the first number of the largest peak is.
  [[nodiscard]] Shape highest(const float* src, std::int64_t n, std::int64_t c) const {
    Shape best{n, c, 0, 0, 0};
    Peak peak = read(src + item(task_.src, best), task_.src.strides.w);
    for_each_number(n, c, [&](const Shape& at) {
      if (at.w % model::peak_numbers != 0) return;
      const Peak found = read(src + item(task_.src, at), task_.src.strides.w);
      if (!wins(found, peak)) return;
      best = at;
      peak = found;
    });
    return best;
  }

  model::HighestPeakTask task_;
};

}  // namespace

std::unique_ptr<Primitive> make_peaks(const model::PeaksTask& task, int threads) {
  if (task.pass == model::Pass::forward) return std::make_unique<PeaksForward>(task, threads);
  return std::make_unique<PeaksBackward>(task, threads);
}

std::unique_ptr<Primitive> make_highest_peak(const model::HighestPeakTask& task) {
  return std::make_unique<HighestPeak>(task);
}

}  // namespace orthant::kernels::pool
