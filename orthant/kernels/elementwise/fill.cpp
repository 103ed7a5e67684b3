#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/lines.hpp"

namespace orthant::kernels::elementwise {
namespace {

class Fill final : public Primitive {
 public:
  Fill(const model::FillTask& task, int threads) : lines_({&task.dst}), team_(team_for(lines_.items(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:fill"; }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    auto* dst = static_cast<float*>(arguments[at::fill::dst]);
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        for (std::int64_t p = 0; p < line.pixels; ++p) {
          std::fill_n(dst + line.offsets[0] + p * line.strides[0], line.channels, 0.0F);
        }
      });
    });
  }

 private:
  Lines lines_;
  int team_;
};

}  // namespace

std::unique_ptr<Primitive> make_fill(const model::FillTask& task, int threads) {
  return std::make_unique<Fill>(task, threads);
}

}  // namespace orthant::kernels::elementwise
