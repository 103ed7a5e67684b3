#include "orthant/kernels/factories.hpp"

namespace orthant::kernels::elementwise {
namespace {

/// A few doubles of a few ranks: not worth more than a loop.
class Sum final : public Primitive {
 public:
  explicit Sum(const model::SumTask& task) : task_(task) {}

  [[nodiscard]] std::string name() const override { return "orthant:sum"; }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    const auto* src = static_cast<const double*>(arguments[at::sum::src]);
    auto* dst = static_cast<double*>(arguments[at::sum::dst]);
    for (std::int64_t i = 0; i < task_.count; ++i) dst[i] = src[i];
    for (int part = 1; part < task_.parts; ++part) {
      for (std::int64_t i = 0; i < task_.count; ++i) dst[i] += src[part * task_.count + i];
    }
  }

 private:
  model::SumTask task_;
};

}  // namespace

std::unique_ptr<Primitive> make_sum(const model::SumTask& task) { return std::make_unique<Sum>(task); }

}  // namespace orthant::kernels::elementwise
