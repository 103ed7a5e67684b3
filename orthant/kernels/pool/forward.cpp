#include "orthant/kernels/pool/pool.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

namespace orthant::kernels::pool {
namespace {

using tensor::Dim;

/// One row of dst after the other, each straight from the rows of src below its windows.
class RowPool final : public Primitive {
 public:
  RowPool(const model::PoolTask& task, int threads)
      : task_(task),
        d_(pool_dim(task, Dim::d)),
        h_(pool_dim(task, Dim::h)),
        w_(pool_dim(task, Dim::w)),
        team_(team_for(tensor::volume(task.dst.extents) * d_.size * h_.size * w_.size, threads)) {
    if (task.kind == model::PoolKind::max) argmax_bytes_ = model::argmax_bytes(task.window);
  }

  [[nodiscard]] std::string name() const override {
    return (task_.kind == model::PoolKind::max ? "orthant:max_pool:" : "orthant:average_pool:") + simd_target();
  }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return thread_bytes() * team_; }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const std::int64_t rows = task_.dst.extents.n * d_.dst * h_.dst;
    run_team(team_, [&](int thread, int team) {
      RowList list{.rows = reinterpret_cast<const float**>(static_cast<std::byte*>(scratch) + thread_bytes() * thread),
                   .taps = nullptr};
      list.taps = reinterpret_cast<std::int32_t*>(list.rows + d_.size * h_.size);
      for (std::int64_t row = share(rows, thread, team); row < share(rows, thread + 1, team); ++row) {
        pool_row(arguments, list, row);
      }
    });
  }

 private:
  struct RowList {
    const float** rows;
    std::int32_t* taps;
  };

  [[nodiscard]] std::int64_t thread_bytes() const { return (d_.size * h_.size * 12 + 63) / 64 * 64; }

  void pool_row(std::span<void* const> arguments, const RowList& list, std::int64_t index) const {
    const std::int64_t oh = index % h_.dst, od = index / h_.dst % d_.dst, n = index / h_.dst / d_.dst;
    const tensor::Shape& to = task_.dst.strides;
    PoolRow row{.w = w_,
                .rows = list.rows,
                .row_taps = list.taps,
                .row_count = list_rows(static_cast<const float*>(arguments[at::pool_forward::src]), list,
                                       {.n = n, .d = od, .h = oh}),
                .channels = task_.src.extents.c,
                .src_stride = task_.src.strides.w,
                .dst_stride = to.w,
                .dst = static_cast<float*>(arguments[at::pool_forward::dst]) + task_.dst.offset + n * to.n + od * to.d +
                       oh * to.h,
                .argmax = nullptr,
                .argmax_bytes = argmax_bytes_,
                .divisor = static_cast<float>(tensor::taps(task_.window)),
                .next_row = h_.stride * task_.src.strides.h,
                .counts_padding = one_divisor_};
    if (task_.kind == model::PoolKind::max) {
      if (arguments[at::pool_forward::argmax]) {
        row.argmax = static_cast<std::byte*>(arguments[at::pool_forward::argmax]) +
                     index * w_.dst * row.channels * argmax_bytes_;
      }
      max_pool_row(row);
    } else {
      const std::int64_t inside = d_.count_global(od) * h_.count_global(oh);
      if (!one_divisor_) row.divisor = static_cast<float>(inside);
      average_pool_row(row);
    }
  }

  /// The rows of src under the windows of one row of dst, in the order of taps.
  std::int64_t list_rows(const float* src, const RowList& list, const tensor::Shape& at) const {
    const TapRange depth = d_.taps_inside(at.d), height = h_.taps_inside(at.h);
    const tensor::Shape& from = task_.src.strides;
    std::int64_t count = 0;
    for (std::int64_t kd = depth.begin; kd < depth.end; ++kd) {
      for (std::int64_t kh = height.begin; kh < height.end; ++kh) {
        const std::int64_t sd = d_.first_input(at.d) + kd * d_.dilation, sh = h_.first_input(at.h) + kh * h_.dilation;
        list.rows[count] = src + task_.src.offset + at.n * from.n + sd * from.d + sh * from.h;
        list.taps[count++] = static_cast<std::int32_t>((kd * h_.size + kh) * w_.size);
      }
    }
    return count;
  }

  model::PoolTask task_;
  PoolDim d_, h_, w_;
  int team_;
  bool one_divisor_ = has_one_divisor(task_);
  std::int64_t argmax_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Primitive> make_pool_forward(const model::PoolTask& task, int threads) {
  return std::make_unique<RowPool>(task, threads);
}

}  // namespace orthant::kernels::pool
