#include "orthant/kernels/pool/pool.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>

namespace orthant::kernels::pool {
namespace {

using tensor::Dim;

/// Averages whose windows overlap in depth: every plane of src is summed over h and w once, into a ring of small
/// planes, and each plane of dst is a sum of some of these. A job is a band of rows of dst, over the whole depth.
class RingAverage final : public Primitive {
 public:
  RingAverage(const model::PoolTask& task, int threads)
      : task_(task),
        d_(pool_dim(task, Dim::d)),
        h_(pool_dim(task, Dim::h)),
        w_(pool_dim(task, Dim::w)),
        row_items_(w_.dst * task.src.extents.c),
        planes_(tensor::reach(task.window, Dim::d)),
        team_(threads) {
    const std::int64_t samples = std::max<std::int64_t>(task.dst.extents.n, 1);
    const std::int64_t rows_in_cache = std::max<std::int64_t>(1, ring_items / (planes_ * row_items_));
    bands_ = std::max((h_.dst + rows_in_cache - 1) / rows_in_cache, (team_ + samples - 1) / samples);
    while (bands_ < h_.dst && bands_ * samples % team_ != 0) ++bands_;
    bands_ = std::clamp<std::int64_t>(bands_, 1, h_.dst);
    band_rows_ = (h_.dst + bands_ - 1) / bands_;
  }

  [[nodiscard]] std::string name() const override { return "orthant:average_pool:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return thread_bytes() * team_; }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const std::int64_t jobs = task_.dst.extents.n * bands_;
    run_team(team_, [&](int thread, int team) {
      auto* memory = static_cast<std::byte*>(scratch) + thread_bytes() * thread;
      for (std::int64_t job = share(jobs, thread, team); job < share(jobs, thread + 1, team); ++job) {
        const Band band{.n = job / bands_,
                        .begin = share(h_.dst, static_cast<int>(job % bands_), static_cast<int>(bands_)),
                        .end = share(h_.dst, static_cast<int>(job % bands_) + 1, static_cast<int>(bands_)),
                        .rows = reinterpret_cast<const float**>(memory),
                        .ring = reinterpret_cast<float*>(memory + list_bytes())};
        pool_band(arguments, band);
      }
    });
  }

 private:
  static constexpr std::int64_t ring_items =
      std::int64_t{128} * 1024;  ///< half a megabyte: a part of the second-level cache

  struct Band {
    std::int64_t n, begin, end;
    const float** rows;
    float* ring;
  };

  [[nodiscard]] std::int64_t list_bytes() const { return (std::max(planes_, h_.size) * 8 + 63) / 64 * 64; }
  [[nodiscard]] std::int64_t thread_bytes() const {
    const std::int64_t bytes = planes_ * band_rows_ * row_items_ * static_cast<std::int64_t>(sizeof(float));
    return list_bytes() + (bytes + 63) / 64 * 64;
  }

  /// Row `oh` of the summed plane `sd`.
  [[nodiscard]] float* ring_row(const Band& band, std::int64_t sd, std::int64_t oh) const {
    return band.ring + (sd % planes_ * band_rows_ + oh - band.begin) * row_items_;
  }

  void pool_band(std::span<void* const> arguments, const Band& band) const {
    std::int64_t next = 0;  // the first plane of src that is not summed yet
    for (std::int64_t od = 0; od < d_.dst; ++od) {
      const TapRange depth = d_.taps_inside(od);
      for (std::int64_t kd = depth.begin; kd < depth.end; ++kd) {
        const std::int64_t sd = d_.first_input(od) + kd;
        if (sd < next) continue;
        sum_plane(static_cast<const float*>(arguments[at::pool_forward::src]), band, sd);
        next = sd + 1;
      }
      write_plane(static_cast<float*>(arguments[at::pool_forward::dst]), band, od);
    }
  }

  void sum_plane(const float* src, const Band& band, std::int64_t sd) const {
    const tensor::Shape& from = task_.src.strides;
    const float* plane = src + task_.src.offset + band.n * from.n + sd * from.d;
    for (std::int64_t oh = band.begin; oh < band.end; ++oh) {
      const TapRange height = h_.taps_inside(oh);
      for (std::int64_t kh = height.begin; kh < height.end; ++kh) {
        band.rows[kh - height.begin] = plane + (h_.first_input(oh) + kh * h_.dilation) * from.h;
      }
      average_pool_row({.w = w_,
                        .rows = band.rows,
                        .row_taps = nullptr,
                        .row_count = height.end - height.begin,
                        .channels = task_.src.extents.c,
                        .src_stride = from.w,
                        .dst_stride = task_.src.extents.c,
                        .dst = ring_row(band, sd, oh),
                        .argmax = nullptr,
                        .argmax_bytes = 0,
                        .divisor = 1,
                        .next_row = h_.stride * from.h,
                        .counts_padding = true});
    }
  }

  void write_plane(float* dst, const Band& band, std::int64_t od) const {
    const tensor::Shape& to = task_.dst.strides;
    const TapRange depth = d_.taps_inside(od);
    const bool touching = to.w == task_.dst.extents.c;  // then a row is one long pixel
    for (std::int64_t oh = band.begin; oh < band.end; ++oh) {
      for (std::int64_t kd = depth.begin; kd < depth.end; ++kd) {
        band.rows[kd - depth.begin] = ring_row(band, d_.first_input(od) + kd, oh);
      }
      const std::int64_t pixels = touching ? 1 : w_.dst;
      average_pool_row({.w = {.src = pixels, .dst = pixels},
                        .rows = band.rows,
                        .row_taps = nullptr,
                        .row_count = depth.end - depth.begin,
                        .channels = touching ? row_items_ : task_.dst.extents.c,
                        .src_stride = task_.dst.extents.c,
                        .dst_stride = to.w,
                        .dst = dst + task_.dst.offset + band.n * to.n + od * to.d + oh * to.h,
                        .argmax = nullptr,
                        .argmax_bytes = 0,
                        .divisor = static_cast<float>(tensor::taps(task_.window)),
                        .next_row = 0,
                        .counts_padding = true});
    }
  }

  model::PoolTask task_;
  PoolDim d_, h_, w_;
  std::int64_t row_items_, planes_;
  int team_;
  std::int64_t bands_ = 1, band_rows_ = 1;
};

}  // namespace

std::unique_ptr<Primitive> make_average_pool_forward(const model::PoolTask& task, int threads) {
  const std::int64_t depth = tensor::reach(task.window, Dim::d);
  const bool overlaps = depth > task.window.stride.d && task.dst.extents.d > 1 && task.window.dilation.d == 1;
  const bool large = tensor::volume(task.src.extents) >= items_worth_a_team;
  if (overlaps && large && has_one_divisor(task)) return std::make_unique<RingAverage>(task, threads);
  return make_pool_forward(task, threads);
}

}  // namespace orthant::kernels::pool
