#include "orthant/base/error.hpp"
#include "orthant/kernels/dense/rows.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>

namespace orthant::kernels::dense {
namespace {

using dense::Range;
using model::DenseTask;
using model::Pass;

/// Reads (or writes) every weight once, in memory order: with small mini-batches the layer is as fast as the memory.
class Dense final : public Primitive {
 public:
  Dense(const DenseTask& task, int threads)
      : task_(task),
        shape_{.samples = task.src.extents.n,
               .inputs = task.src.extents.c,
               .outputs = task.dst.extents.c,
               .src_step = task.src.strides.n,
               .dst_step = task.dst.strides.n},
        threads_(team_for(shape_.inputs * shape_.outputs, threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:dense:" + simd_target(); }

  void execute(const Context& /*context*/, std::span<void* const> arguments, void* /*scratch*/) override {
    run_team(threads_, [&](int thread, int team) {
      switch (task_.pass) {
        case Pass::forward: return forward(arguments, part(shape_.outputs, thread, team));
        case Pass::backward_data: return backward_data(arguments, part(shape_.inputs, thread, team));
        case Pass::backward_weights: return backward_weights(arguments, part(shape_.outputs, thread, team));
      }
    });
  }

 private:
  /// Whole cache lines, so that no two threads write to one.
  static Range part(std::int64_t total, int thread, int team) {
    constexpr std::int64_t line = 16;
    const std::int64_t lines = (total + line - 1) / line;
    return {share(lines, thread, team) * line, std::min(total, share(lines, thread + 1, team) * line)};
  }
  [[nodiscard]] float* src_at(void* buffer) const { return static_cast<float*>(buffer) + task_.src.offset; }
  [[nodiscard]] float* dst_at(void* buffer) const { return static_cast<float*>(buffer) + task_.dst.offset; }

  void forward(std::span<void* const> arguments, Range outputs) const {
    dense::run(dense::ForwardCall{.shape = shape_,
                                  .outputs = outputs,
                                  .activation = task_.activation,
                                  .src = src_at(arguments[at::conv_forward::src]),
                                  .weights = static_cast<const float*>(arguments[at::conv_forward::weights]),
                                  .bias = static_cast<const float*>(arguments[at::conv_forward::bias]),
                                  .dst = dst_at(arguments[at::conv_forward::dst])});
  }
  void backward_data(std::span<void* const> arguments, Range inputs) const {
    dense::run(dense::BackwardDataCall{.shape = shape_,
                                       .inputs = inputs,
                                       .diff_dst = dst_at(arguments[at::conv_backward_data::diff_dst]),
                                       .weights = static_cast<const float*>(arguments[at::conv_backward_data::weights]),
                                       .diff_src = src_at(arguments[at::conv_backward_data::diff_src])});
  }
  void backward_weights(std::span<void* const> arguments, Range outputs) const {
    dense::run(dense::BackwardWeightsCall{
        .shape = shape_,
        .outputs = outputs,
        .accumulate = task_.accumulate,
        .src = src_at(arguments[at::conv_backward_weights::src]),
        .diff_dst = dst_at(arguments[at::conv_backward_weights::diff_dst]),
        .diff_weights = static_cast<float*>(arguments[at::conv_backward_weights::diff_weights]),
        .diff_bias = static_cast<float*>(arguments[at::conv_backward_weights::diff_bias])});
  }

  DenseTask task_;
  dense::Shape shape_;
  int threads_;
};

bool rows_are_contiguous(const tensor::Layout& layout) { return layout.extents.c == 1 || layout.strides.c == 1; }

}  // namespace

std::unique_ptr<Primitive> make_dense(const DenseTask& task, int threads) {
  if (!rows_are_contiguous(task.src) || !rows_are_contiguous(task.dst)) {
    base::fail(base::Exit::internal, "dense: channels of a sample are not contiguous; copy them first");
  }
  return std::make_unique<Dense>(task, threads);
}

}  // namespace orthant::kernels::dense
