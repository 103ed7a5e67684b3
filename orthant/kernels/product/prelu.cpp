#include "orthant/kernels/channel_sums.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/norm/norm.hpp"
#include "orthant/kernels/product/rows.hpp"
#include "orthant/kernels/simd.hpp"

#include <algorithm>

namespace orthant::kernels::product {
namespace {

/// A weight for every item of a widened row.
void fill_row(const float* weights, bool shared, const Lines& lines, float* row) {
  if (shared) {
    std::fill_n(row, lines.channels() * lines.width_factor(), *weights);
  } else {
    norm::repeat_channels(weights, lines.channels(), lines.width_factor(), row);
  }
}

class ForwardPRelu final : public Primitive {
 public:
  ForwardPRelu(const model::PReluTask& task, int threads)
      : shared_(task.shared), lines_({&task.src, &task.dst}), team_(team_for(lines_.items(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:prelu:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return lines_.channels() * lines_.width_factor() * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    auto* row = static_cast<float*>(scratch);
    fill_row(static_cast<const float*>(arguments[at::prelu_forward::weights]), shared_, lines_, row);
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        const PReluLine args{.src = static_cast<const float*>(arguments[at::prelu_forward::src]) + line.offsets[0],
                             .weights = row,
                             .dst = static_cast<float*>(arguments[at::prelu_forward::dst]) + line.offsets[1],
                             .src_stride = line.strides[0],
                             .dst_stride = line.strides[1]};
        prelu(args, line.pixels, line.channels);
      });
    });
  }

 private:
  bool shared_;
  Lines lines_;
  int team_;
};

class BackwardPRelu final : public Primitive {
 public:
  BackwardPRelu(const model::PReluTask& task, int threads)
      : shared_(task.shared),
        accumulate_(task.accumulate),
        lines_({&task.dst, &task.src, &norm::given_or(task.diff_src, task.src)}),
        team_(team_for(lines_.items(), threads)),
        sums_(1, lines_.channels(), lines_.width_factor(), team_) {}

  [[nodiscard]] std::string name() const override { return "orthant:prelu:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return sums_.bytes() + sums_.width() * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    auto* row = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + sums_.bytes());
    fill_row(static_cast<const float*>(arguments[at::prelu_backward::weights]), shared_, lines_, row);
    for (int thread = 0; thread < team_; ++thread) sums_.clear(scratch, thread);
    run_team(team_, [&](int thread, int team) {
      RowCount count;
      lines_.visit_part(thread, team, ChannelSums::block_rows, [&](const Line& line) {
        if (count.is_full(line.pixels)) sums_.flush(scratch, thread);
        const PReluGradientLine args{
            .diff_dst = static_cast<const float*>(arguments[at::prelu_backward::diff_dst]) + line.offsets[0],
            .src = static_cast<const float*>(arguments[at::prelu_backward::src]) + line.offsets[1],
            .weights = row,
            .diff_src = static_cast<float*>(arguments[at::prelu_backward::diff_src]) + line.offsets[2],
            .sums = sums_.block(scratch, thread, 0),
            .diff_dst_stride = line.strides[0],
            .src_stride = line.strides[1],
            .diff_src_stride = line.strides[2]};
        prelu_gradient(args, line.pixels, line.channels);
      });
      sums_.flush(scratch, thread);
    });
    write(static_cast<float*>(arguments[at::prelu_backward::diff_weights]), scratch);
  }

 private:
  void write(float* diff_weights, const void* scratch) const {
    double all = 0;
    for (std::int64_t c = 0; c < lines_.channels(); ++c) {
      const double sum = sums_.total(scratch, team_, 0, c);
      all += sum;
      if (!shared_) diff_weights[c] = static_cast<float>(sum) + (accumulate_ ? diff_weights[c] : 0.0F);
    }
    if (shared_) *diff_weights = static_cast<float>(all) + (accumulate_ ? *diff_weights : 0.0F);
  }

  bool shared_;
  bool accumulate_;
  Lines lines_;
  int team_;
  ChannelSums sums_;
};

}  // namespace

std::unique_ptr<Primitive> make_prelu(const model::PReluTask& task, int threads) {
  if (task.pass == model::Pass::forward) return std::make_unique<ForwardPRelu>(task, threads);
  return std::make_unique<BackwardPRelu>(task, threads);
}

}  // namespace orthant::kernels::product
