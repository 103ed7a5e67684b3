#include "orthant/kernels/channel_sums.hpp"
#include "orthant/kernels/pool/pool.hpp"
#include "orthant/kernels/simd.hpp"

namespace orthant::kernels::pool {
namespace {

/// The mean of each channel of each sample, or this part's share of it.
class GlobalAverage final : public Primitive {
 public:
  GlobalAverage(const model::PoolTask& task, int threads)
      : task_(task),
        lines_({&sample_}),
        team_(team_for(lines_.items() * task.src.extents.n, threads)),
        sums_(1, lines_.channels(), lines_.width_factor(), team_) {}

  [[nodiscard]] std::string name() const override { return "orthant:global_average_pool:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return sums_.bytes(); }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const auto* src = static_cast<const float*>(arguments[at::pool_forward::src]);
    auto* dst = static_cast<float*>(arguments[at::pool_forward::dst]);
    const std::int64_t samples = task_.src.extents.n;
    if (samples >= team_) {
      run_team(team_, [&](int thread, int team) {
        for (std::int64_t n = share(samples, thread, team); n < share(samples, thread + 1, team); ++n) {
          sums_.clear(scratch, thread);
          sums_.add(scratch, thread, lines_, src + n * task_.src.strides.n, 0, 1);
          write(dst, n, [&](std::int64_t c) { return sums_.thread_total(scratch, thread, 0, c); });
        }
      });
      return;
    }
    for (std::int64_t n = 0; n < samples; ++n) {
      for (int thread = 0; thread < team_; ++thread) sums_.clear(scratch, thread);
      run_team(team_, [&](int thread, int team) {
        sums_.add(scratch, thread, lines_, src + n * task_.src.strides.n, thread, team);
      });
      write(dst, n, [&](std::int64_t c) { return sums_.total(scratch, team_, 0, c); });
    }
  }

 private:
  static tensor::Layout one_sample(const model::PoolTask& task) {
    tensor::Layout layout = task.src;
    layout.extents.n = 1;
    return layout;
  }

  static double divisor_of(const model::PoolTask& task) {
    if (task.count_include_pad) return static_cast<double>(tensor::taps(task.window));
    double taps = 1;
    for (const tensor::Dim dim : tensor::spatial_dims) {
      taps *= static_cast<double>(pool_dim(task, dim).count_global(0));
    }
    return taps;
  }

  template <class Sum>
  void write(float* dst, std::int64_t n, Sum sum) const {
    float* row = dst + task_.dst.offset + n * task_.dst.strides.n;
    for (std::int64_t c = 0; c < lines_.channels(); ++c) row[c] = static_cast<float>(sum(c) / divisor_);
  }

  model::PoolTask task_;
  tensor::Layout sample_ = one_sample(task_);
  Lines lines_;
  int team_;
  ChannelSums sums_;
  double divisor_ = divisor_of(task_);
};

}  // namespace

std::unique_ptr<Primitive> make_global_pool_forward(const model::PoolTask& task, int threads) {
  return std::make_unique<GlobalAverage>(task, threads);
}

}  // namespace orthant::kernels::pool
