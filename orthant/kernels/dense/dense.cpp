#include "orthant/base/error.hpp"
#include "orthant/kernels/dense/gradient.hpp"
#include "orthant/kernels/dense/product.hpp"
#include "orthant/kernels/dense/rows.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>
#include <array>

namespace orthant::kernels::dense {
namespace {

using model::DenseTask;
using model::Pass;

/// So few samples are multiplied by weights in place, which are read once and in order.
constexpr std::int64_t few_samples_forward = 24, few_samples_backward = 4;

Shape shape_of(const DenseTask& task) {
  return {.samples = task.src.extents.n,
          .inputs = task.src.extents.c,
          .outputs = task.dst.extents.c,
          .src_step = task.src.strides.n,
          .dst_step = task.dst.strides.n};
}

int team_of(const DenseTask& task, int threads) { return team_for(task.src.extents.c * task.dst.extents.c, threads); }

/// Whole cache lines, so that no two threads write to one.
Range part_of(std::int64_t total, int thread, int team) {
  const std::int64_t lines = ceil_div(total, line_floats);
  return {share(lines, thread, team) * line_floats, std::min(total, share(lines, thread + 1, team) * line_floats)};
}

constexpr std::int64_t bytes_of(std::int64_t floats) { return floats * static_cast<std::int64_t>(sizeof(float)); }

class Dense : public Primitive {
 public:
  Dense(const DenseTask& task, int threads) : task_(task), shape_(shape_of(task)), threads_(team_of(task, threads)) {}
  [[nodiscard]] std::string name() const override { return "orthant:dense:" + simd_target(); }

 protected:
  [[nodiscard]] float* src_at(void* buffer) const { return static_cast<float*>(buffer) + task_.src.offset; }
  [[nodiscard]] float* dst_at(void* buffer) const { return static_cast<float*>(buffer) + task_.dst.offset; }

  DenseTask task_;
  Shape shape_;
  int threads_;
};

class Forward final : public Dense {
 public:
  Forward(const DenseTask& task, int threads)
      : Dense(task, threads),
        product_({.rows = shape_.samples, .inner = shape_.inputs, .columns = shape_.outputs, .transposed = true},
                 threads_),
        few_(shape_.samples <= few_samples_forward) {}
  [[nodiscard]] std::int64_t scratch_bytes() const override { return bytes_of(threads_ * thread_floats()); }

  void execute(const Context& /*context*/, std::span<void* const> arguments, void* scratch) override {
    const auto* weights = static_cast<const float*>(arguments[at::conv_forward::weights]);
    FinishCall finish{.shape = shape_,
                      .activation = task_.activation,
                      .bias = static_cast<const float*>(arguments[at::conv_forward::bias]),
                      .dst = dst_at(arguments[at::conv_forward::dst])};
    const float* src = src_at(arguments[at::conv_forward::src]);
    run_team(threads_, [&](int thread, int team) {
      FinishCall own = finish;
      if (few_) {
        own.part = {.rows = {0, shape_.samples}, .columns = part_of(shape_.outputs, thread, team)};
        dense::run(ForwardCall{.shape = shape_,
                               .outputs = own.part.columns,
                               .src = src,
                               .weights = weights,
                               .dst = finish.dst,
                               .copy = static_cast<float*>(scratch) + thread * thread_floats()});
      } else {
        own.part = product_.part(thread, team);
        product_.run(
            {.a = src, .a_row = shape_.src_step, .weights = weights, .c = finish.dst, .c_row = shape_.dst_step},
            own.part, static_cast<float*>(scratch) + thread * thread_floats());
      }
      dense::run(own);
    });
  }

 private:
  [[nodiscard]] std::int64_t thread_floats() const {
    return few_ ? dot_floats(shape_.samples) : product_.thread_floats();
  }

  Product product_;
  bool few_;
};

class BackwardData final : public Dense {
 public:
  BackwardData(const DenseTask& task, int threads)
      : Dense(task, threads),
        product_({.rows = shape_.samples, .inner = shape_.outputs, .columns = shape_.inputs, .transposed = false},
                 threads_),
        few_(shape_.samples <= few_samples_backward) {}
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return few_ ? 0 : bytes_of(threads_ * product_.thread_floats());
  }

  void execute(const Context& /*context*/, std::span<void* const> arguments, void* scratch) override {
    const float* diff_dst = dst_at(arguments[at::conv_backward_data::diff_dst]);
    const auto* weights = static_cast<const float*>(arguments[at::conv_backward_data::weights]);
    float* diff_src = src_at(arguments[at::conv_backward_data::diff_src]);
    run_team(threads_, [&](int thread, int team) {
      if (few_) {
        dense::run(BackwardDataCall{.shape = shape_,
                                    .inputs = part_of(shape_.inputs, thread, team),
                                    .diff_dst = diff_dst,
                                    .weights = weights,
                                    .diff_src = diff_src});
        return;
      }
      product_.run(
          {.a = diff_dst, .a_row = shape_.dst_step, .weights = weights, .c = diff_src, .c_row = shape_.src_step},
          product_.part(thread, team), static_cast<float*>(scratch) + thread * product_.thread_floats());
    });
  }

 private:
  Product product_;
  bool few_;
};

class BackwardWeights final : public Dense {
 public:
  BackwardWeights(const DenseTask& task, int threads)
      : Dense(task, threads),
        gradient_(shape_, task.accumulate, threads_),
        bias_(elementwise::make_bias_gradient({.accumulate = task.accumulate, .dst = task.dst}, threads)) {}
  [[nodiscard]] std::int64_t scratch_bytes() const override { return own_bytes() + bias_->scratch_bytes(); }

  void execute(const Context& context, std::span<void* const> arguments, void* scratch) override {
    void* const diff_bias = arguments[at::conv_backward_weights::diff_bias];
    if (diff_bias != nullptr)
      bias_->execute(context, std::array{arguments[at::conv_backward_weights::diff_dst], diff_bias},
                     static_cast<std::byte*>(scratch) + own_bytes());
    const Gradient::Operands operands{
        .src = src_at(arguments[at::conv_backward_weights::src]),
        .diff_dst = dst_at(arguments[at::conv_backward_weights::diff_dst]),
        .diff_weights = static_cast<float*>(arguments[at::conv_backward_weights::diff_weights])};
    run_team(threads_, [&](int thread, int team) {
      gradient_.run(operands, thread, team, static_cast<float*>(scratch) + thread * gradient_.thread_floats());
    });
  }

 private:
  [[nodiscard]] std::int64_t own_bytes() const { return bytes_of(threads_ * gradient_.thread_floats()); }

  Gradient gradient_;
  std::unique_ptr<Primitive> bias_;  ///< sums diff_dst
};

bool rows_are_contiguous(const tensor::Layout& layout) { return layout.extents.c == 1 || layout.strides.c == 1; }

}  // namespace

std::unique_ptr<Primitive> make_dense(const DenseTask& task, int threads) {
  if (!rows_are_contiguous(task.src) || !rows_are_contiguous(task.dst)) {
    base::fail(base::Exit::internal, "dense: channels of a sample are not contiguous; copy them first");
  }
  switch (task.pass) {
    case Pass::forward: return std::make_unique<Forward>(task, threads);
    case Pass::backward_data: return std::make_unique<BackwardData>(task, threads);
    case Pass::backward_weights: return std::make_unique<BackwardWeights>(task, threads);
  }
  return nullptr;
}

}  // namespace orthant::kernels::dense
