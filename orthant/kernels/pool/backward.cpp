#include "orthant/base/error.hpp"
#include "orthant/kernels/elementwise/activation.hpp"
#include "orthant/kernels/pool/gradient.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>

namespace orthant::kernels::pool {
namespace {

using tensor::Dim;

/// The largest number of outputs that read one input.
std::int64_t most_readers(const Readers& readers) {
  std::int64_t most = 0;
  for (std::size_t s = 1; s < readers.begin.size(); ++s) {
    most = std::max<std::int64_t>(most, readers.begin[s] - readers.begin[s - 1]);
  }
  return most;
}

/// One row of diff_src after the other; every item is written once, so threads need no agreement.
class PoolBackward final : public Primitive {
 public:
  PoolBackward(const model::PoolTask& task, int threads)
      : task_(task),
        d_(pool_dim(task, Dim::d)),
        h_(pool_dim(task, Dim::h)),
        w_(pool_dim(task, Dim::w)),
        depth_(d_),
        height_(h_),
        width_(w_),
        most_readers_in_row_(most_readers(width_)),
        most_rows_(most_readers(depth_) * most_readers(height_)),
        team_(team_for(2 * tensor::volume(task.src.extents), threads)) {
    elementwise::check_invertible(task.activation);
    if (task.accumulate && task.activation.kind != model::ActivationKind::identity) {
      base::fail(base::Exit::internal, "pooling cannot add to a gradient and differentiate an activation at once");
    }
    if (task.kind == model::PoolKind::max) argmax_bytes_ = model::argmax_bytes(task.window);
    for (std::int64_t o = 0; o < w_.dst; ++o) pixel_factors_.push_back(pixel_factor(o));
    if (most_readers_in_row_ <= 2) list_pairs();
  }

  [[nodiscard]] std::string name() const override {
    return (task_.kind == model::PoolKind::max ? "orthant:max_pool:" : "orthant:average_pool:") + simd_target();
  }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return thread_bytes() * team_; }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const std::int64_t rows = task_.src.extents.n * d_.src * h_.src;
    run_team(team_, [&](int thread, int team) {
      const Lists lists = lists_of(static_cast<std::byte*>(scratch) + thread_bytes() * thread);
      if (task_.kind == model::PoolKind::average) {
        std::fill_n(lists.sums + w_.dst * task_.src.extents.c, task_.src.extents.c, 0.0F);
      }
      for (std::int64_t row = share(rows, thread, team); row < share(rows, thread + 1, team); ++row) {
        make_row(arguments, lists, row);
      }
    });
  }

 private:
  /// The rows of diff_dst that one row of diff_src gets its gradient from.
  struct Lists {
    const float** rows;
    const void** argmax;
    float* factors;
    std::int32_t* taps;
    float* sums;
  };

  [[nodiscard]] std::int64_t list_bytes() const { return (most_rows_ * 24 + 63) / 64 * 64; }
  [[nodiscard]] std::int64_t thread_bytes() const {
    const bool sums = task_.kind == model::PoolKind::average;
    const std::int64_t sum_bytes =
        sums ? (w_.dst + 1) * task_.src.extents.c * static_cast<std::int64_t>(sizeof(float)) : 0;
    return list_bytes() + (sum_bytes + 63) / 64 * 64;
  }

  [[nodiscard]] Lists lists_of(std::byte* memory) const {
    Lists lists{};
    lists.rows = reinterpret_cast<const float**>(memory);
    lists.argmax = reinterpret_cast<const void**>(lists.rows + most_rows_);
    lists.factors = reinterpret_cast<float*>(lists.argmax + most_rows_);
    lists.taps = reinterpret_cast<std::int32_t*>(lists.factors + most_rows_);
    lists.sums = reinterpret_cast<float*>(memory + list_bytes());
    return lists;
  }

  void list_pairs() {
    const std::int64_t channels = task_.src.extents.c;
    for (std::size_t s = 0; s < static_cast<std::size_t>(w_.src); ++s) {
      for (std::int32_t reader = width_.begin[s]; reader < width_.begin[s] + 2; ++reader) {
        const bool exists = reader < width_.begin[s + 1];
        const std::int64_t pixel = exists ? width_.output[static_cast<std::size_t>(reader)] : w_.dst;
        reader_pairs_.push_back(static_cast<std::int32_t>(pixel * channels));
      }
    }
  }

  /// The part of 1 / (items of a window) that depends on w; the rest is in the rows' factors.
  [[nodiscard]] float pixel_factor(std::int64_t o) const {
    if (one_divisor_) return static_cast<float>(1 / static_cast<double>(tensor::taps(task_.window)));
    return 1 / static_cast<float>(w_.count_global(o));
  }

  void make_row(std::span<void* const> arguments, const Lists& lists, std::int64_t index) const {
    const std::int64_t sh = index % h_.src, sd = index / h_.src % d_.src, n = index / h_.src / d_.src;
    const tensor::Shape& strides = task_.src.strides;
    const std::int64_t at = task_.src.offset + n * strides.n + sd * strides.d + sh * strides.h;
    const bool needs_y = task_.activation.kind != model::ActivationKind::identity;
    const PoolGradientRow row{.kind = task_.activation.kind,
                              .slope = static_cast<float>(task_.activation.slope),
                              .readers_begin = width_.begin.data(),
                              .readers_output = width_.output.data(),
                              .readers_tap = width_.tap.data(),
                              .reader_pairs = reader_pairs_.empty() ? nullptr : reader_pairs_.data(),
                              .rows = lists.rows,
                              .row_factors = lists.factors,
                              .argmax = lists.argmax,
                              .row_taps = lists.taps,
                              .one_reader = most_readers_in_row_ <= 1,
                              .row_count = list_rows(arguments, lists, {.n = n, .d = sd, .h = sh}),
                              .channels = task_.src.extents.c,
                              .src_pixels = w_.src,
                              .dst_pixels = w_.dst,
                              .dst_stride = task_.dst.strides.w,
                              .src_stride = strides.w,
                              .argmax_bytes = argmax_bytes_,
                              .pixel_factors = pixel_factors_.data(),
                              .one_factor = one_divisor_,
                              .sums = lists.sums,
                              .y = needs_y ? static_cast<const float*>(arguments[at::pool_backward::y]) + at : nullptr,
                              .diff_src = static_cast<float*>(arguments[at::pool_backward::diff_src]) + at,
                              .accumulate = task_.accumulate};
    task_.kind == model::PoolKind::max ? max_pool_gradient_row(row) : average_pool_gradient_row(row);
  }

  [[nodiscard]] std::int64_t list_rows(std::span<void* const> arguments, const Lists& lists,
                                       const tensor::Shape& at) const {
    const tensor::Shape& strides = task_.dst.strides;
    const float* diff_dst =
        static_cast<const float*>(arguments[at::pool_backward::diff_dst]) + task_.dst.offset + at.n * strides.n;
    const auto* argmax = static_cast<const std::byte*>(arguments[at::pool_backward::argmax]);
    const std::int64_t row_bytes = w_.dst * task_.src.extents.c * argmax_bytes_;
    const auto d = static_cast<std::size_t>(at.d), h = static_cast<std::size_t>(at.h);
    std::int64_t count = 0;
    for (auto i = static_cast<std::size_t>(depth_.begin[d]); i < static_cast<std::size_t>(depth_.begin[d + 1]); ++i) {
      for (auto j = static_cast<std::size_t>(height_.begin[h]); j < static_cast<std::size_t>(height_.begin[h + 1]);
           ++j) {
        const std::int64_t od = depth_.output[i], oh = height_.output[j];
        lists.rows[count] = diff_dst + od * strides.d + oh * strides.h;
        lists.argmax[count] = argmax ? argmax + ((at.n * d_.dst + od) * h_.dst + oh) * row_bytes : nullptr;
        lists.taps[count] = static_cast<std::int32_t>((depth_.tap[i] * h_.size + height_.tap[j]) * w_.size);
        const auto inside = static_cast<float>(d_.count_global(od) * h_.count_global(oh));
        lists.factors[count++] = one_divisor_ ? 1 : 1 / inside;
      }
    }
    return count;
  }

  model::PoolTask task_;
  PoolDim d_, h_, w_;
  Readers depth_, height_, width_;
  std::int64_t most_readers_in_row_, most_rows_;
  int team_;
  bool one_divisor_ = has_one_divisor(task_);
  std::int64_t argmax_bytes_ = 0;
  std::vector<float> pixel_factors_;
  std::vector<std::int32_t> reader_pairs_;
};

}  // namespace

std::unique_ptr<Primitive> make_pool_backward(const model::PoolTask& task, int threads) {
  return std::make_unique<PoolBackward>(task, threads);
}

}  // namespace orthant::kernels::pool
