#include "orthant/kernels/conv.hpp"
#include "orthant/base/format.hpp"
#include "orthant/kernels/direct/correlation.hpp"
#include "orthant/kernels/direct/weights.hpp"
#include "orthant/kernels/instruction_set.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>

namespace orthant::kernels::direct {
namespace {

std::string full_name(const std::string& variant) {
  return fmt::format("orthant:direct:{}:{}", simd_target(), variant);
}

std::int64_t bytes(std::int64_t floats) { return floats * static_cast<std::int64_t>(sizeof(float)); }

/// Calls work(share) for each of `shares` shares of the work, however large a team OpenMP provides.
template <class Work>
void each_share(int shares, const Work& work) {
  run_team(shares, [&](int thread, int team) {
    for (int share = thread; share < shares; share += team) work(share);
  });
}

/// Forward, and backward_data as one correlation per phase of the stride.
class DirectCorrelation final : public Primitive {
 public:
  DirectCorrelation(const model::ConvTask& task, int threads) : pass_(task.pass), threads_(threads) {
    const bool forward = pass_ == model::Pass::forward;
    const Epilogue epilogue = forward ? Epilogue{.bias = task.bias, .activation = task.activation} : Epilogue{};
    std::vector<Correlation> correlations =
        forward ? std::vector{forward_correlation(task)} : backward_data_correlations(task);
    for (Correlation& correlation : correlations) kernels_.emplace_back(std::move(correlation), epilogue, threads);
  }

  [[nodiscard]] std::string name() const override {
    return full_name(kernels_.empty() ? "nothing" : kernels_.front().variant());
  }

  [[nodiscard]] std::int64_t scratch_bytes() const override {
    std::int64_t most = 0;
    for (const CorrelationKernel& kernel : kernels_) most = std::max(most, kernel.scratch_floats());
    return bytes(most);
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const CorrelationKernel::Arguments call{correlation_arguments(pass_, arguments), static_cast<float*>(scratch)};
    for (const CorrelationKernel& kernel : kernels_) {
      each_share(threads_, [&](int share) { kernel.prepare(call, share); });
      each_share(threads_, [&](int share) { kernel.run(call, share); });
    }
  }

 private:
  model::Pass pass_;
  int threads_;
  std::vector<CorrelationKernel> kernels_;
};

class DirectWeights final : public Primitive {
 public:
  DirectWeights(const model::ConvTask& task, int threads)
      : threads_(threads), kernel_(forward_correlation(task), task.bias, task.accumulate, threads) {}

  [[nodiscard]] std::string name() const override { return full_name(kernel_.variant()); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return bytes(kernel_.scratch_floats()); }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const WeightsKernel::Arguments call{
        .src = static_cast<const float*>(arguments[at::conv_backward_weights::src]),
        .diff_dst = static_cast<const float*>(arguments[at::conv_backward_weights::diff_dst]),
        .diff_weights = static_cast<float*>(arguments[at::conv_backward_weights::diff_weights]),
        .diff_bias = static_cast<float*>(arguments[at::conv_backward_weights::diff_bias]),
        .scratch = static_cast<float*>(scratch)};
    each_share(threads_, [&](int share) { kernel_.prepare(call, share); });
    each_share(threads_, [&](int share) { kernel_.run(call, share); });
    each_share(threads_, [&](int share) { kernel_.reduce(call, share); });
  }

 private:
  int threads_;
  WeightsKernel kernel_;
};

}  // namespace

std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, int threads) {
  limit_instructions();
  if (task.pass == model::Pass::backward_weights) return std::make_unique<DirectWeights>(task, threads);
  return std::make_unique<DirectCorrelation>(task, threads);
}

}  // namespace orthant::kernels::direct
