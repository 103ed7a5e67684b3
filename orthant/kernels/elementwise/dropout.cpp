#include "orthant/kernels/elementwise/dropout.hpp"

#include "orthant/base/error.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/lines.hpp"
#include "orthant/kernels/team.hpp"

namespace orthant::kernels::elementwise {
namespace {

using tensor::Shape;

/// Plain code: dropout stands before dense layers, whose tensors are small.
class DropoutPrimitive final : public Primitive {
 public:
  DropoutPrimitive(const model::DropoutTask& task, int threads)
      : task_(task), lines_({&task.src, &task.dst}), team_(team_for(8 * lines_.items(), threads)) {
    if (tensor::extents_of(task.box) != task.src.extents) {
      base::fail(base::Exit::internal, "dropout of {} items has a box of {}", tensor::to_text(task.src.extents),
                 tensor::to_text(tensor::extents_of(task.box)));
    }
    if (!(task.rate >= 0 && task.rate < 1)) {
      base::fail(base::Exit::bad_data, "dropout has rate {}; it must be at least 0 and below 1", task.rate);
    }
  }

  [[nodiscard]] std::string name() const override { return "orthant:dropout:scalar"; }

  void execute(const Context& context, std::span<void* const> arguments, void*) override {
    const auto* src = static_cast<const float*>(arguments[at::dropout::src]);
    auto* dst = static_cast<float*>(arguments[at::dropout::dst]);
    const std::uint64_t key = dropout_key(context, task_.layer);
    const Shape& extents = task_.src.extents;
    run_team(team_, [&](int thread, int team) {
      // With one pixel per sample only the channels are left to share.
      const std::int64_t first = share(extents.c, thread, team), last = share(extents.c, thread + 1, team);
      for (std::int64_t pixel = 0; pixel < lines_.pixels(); ++pixel) {
        const Shape at = position_of(pixel);
        const std::uint64_t index = dropout_index(task_.global, global_of(at));
        const float* from = src + item(task_.src, at);
        float* to = dst + item(task_.dst, at);
        for (std::int64_t c = first; c < last; ++c) {
          const bool kept = base::uniform(key, index + static_cast<std::uint64_t>(c)) >= task_.rate;
          to[c] = kept ? from[c] * factor_ : 0.0F;
        }
      }
    });
  }

 private:
  [[nodiscard]] Shape position_of(std::int64_t pixel) const {
    const Shape& extents = task_.src.extents;
    Shape at{.c = 0};
    at.w = pixel % extents.w;
    at.h = pixel / extents.w % extents.h;
    at.d = pixel / extents.w / extents.h % extents.d;
    at.n = pixel / extents.w / extents.h / extents.d;
    return at;
  }

  [[nodiscard]] Shape global_of(const Shape& at) const {
    Shape global;
    for (const tensor::Dim dim : tensor::all_dims) global[dim] = at[dim] + task_.box.lo[dim];
    return global;
  }

  static std::int64_t item(const tensor::Layout& layout, const Shape& at) {
    const Shape& stride = layout.strides;
    return layout.offset + at.n * stride.n + at.d * stride.d + at.h * stride.h + at.w * stride.w;
  }

  model::DropoutTask task_;
  Lines lines_;
  int team_;
  float factor_ = static_cast<float>(1 / (1 - task_.rate));
};

}  // namespace

std::unique_ptr<Primitive> make_dropout(const model::DropoutTask& task, int threads) {
  return std::make_unique<DropoutPrimitive>(task, threads);
}

}  // namespace orthant::kernels::elementwise
