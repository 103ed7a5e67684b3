#include "orthant/kernels/channel_sums.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/simd.hpp"

namespace orthant::kernels::elementwise {
namespace {

class BiasGradient final : public Primitive {
 public:
  BiasGradient(const model::BiasGradientTask& task, int threads)
      : accumulate_(task.accumulate),
        lines_({&task.dst}),
        team_(team_for(lines_.items(), threads)),
        sums_(1, lines_.channels(), lines_.width_factor(), team_) {}

  [[nodiscard]] std::string name() const override { return "orthant:bias_gradient:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return sums_.bytes(); }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const auto* diff_dst = static_cast<const float*>(arguments[at::bias_gradient::diff_dst]);
    auto* diff_bias = static_cast<float*>(arguments[at::bias_gradient::diff_bias]);
    for (int thread = 0; thread < team_; ++thread) sums_.clear(scratch, thread);
    run_team(team_, [&](int thread, int team) { sums_.add(scratch, thread, lines_, diff_dst, thread, team); });
    for (std::int64_t c = 0; c < lines_.channels(); ++c) {
      diff_bias[c] = static_cast<float>(sums_.total(scratch, team_, 0, c)) + (accumulate_ ? diff_bias[c] : 0.0F);
    }
  }

 private:
  bool accumulate_;
  Lines lines_;
  int team_;
  ChannelSums sums_;
};

}  // namespace

std::unique_ptr<Primitive> make_bias_gradient(const model::BiasGradientTask& task, int threads) {
  return std::make_unique<BiasGradient>(task, threads);
}

}  // namespace orthant::kernels::elementwise
