#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/lines.hpp"
#include "orthant/kernels/norm/norm.hpp"
#include "orthant/kernels/product/rows.hpp"
#include "orthant/kernels/product/shape.hpp"
#include "orthant/kernels/simd.hpp"

#include <algorithm>

namespace orthant::kernels::product {
namespace {

/// One number of b for every item, or for every pixel.
class SpreadProduct final : public Primitive {
 public:
  SpreadProduct(const model::ProductTask& task, Reach reach, int threads)
      : by_pixel_(reach == Reach::pixel),
        b_(by_pixel_ ? spread_over_channels(task.b, task.dst.extents) : task.b),
        lines_({&task.a, &b_, &task.dst}),
        team_(team_for(lines_.items(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:product:" + simd_target(); }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        const ProductLine args{.a = static_cast<const float*>(arguments[at::product::a]) + line.offsets[0],
                               .b = static_cast<const float*>(arguments[at::product::b]) + line.offsets[1],
                               .bias = nullptr,
                               .dst = static_cast<float*>(arguments[at::product::dst]) + line.offsets[2],
                               .a_stride = line.strides[0],
                               .b_stride = line.strides[1],
                               .dst_stride = line.strides[2]};
        by_pixel_ ? multiply_pixels(args, line.pixels, line.channels) : multiply(args, line.pixels, line.channels);
      });
    });
  }

 private:
  bool by_pixel_;
  tensor::Layout b_;
  Lines lines_;
  int team_;
};

/// One row of numbers for all pixels, of every sample or of all samples.
class RowProduct final : public Primitive {
 public:
  RowProduct(const model::ProductTask& task, Reach reach, int threads)
      : b_(task.b),
        one_for_all_(reach == Reach::sample),
        samples_(task.b.extents.n > 1 || task.dst.extents.n == task.b.extents.n, {&task.a, &task.dst}),
        team_(team_for(lines().items(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:product:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return 2 * width() * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    auto* row = static_cast<float*>(scratch);
    const auto* bias = static_cast<const float*>(arguments[at::product::bias]);
    if (bias) norm::repeat_channels(bias, lines().channels(), lines().width_factor(), row + width());
    for (std::int64_t sample = 0; sample < samples_.parts(); ++sample) {
      fill(row, static_cast<const float*>(arguments[at::product::b]) + b_.offset + sample * b_.strides.n);
      run_team(team_, [&](int thread, int team) {
        samples_.visit_part(sample, thread, team, rows_per_call, [&](const Line& line) {
          const ProductLine args{.a = static_cast<const float*>(arguments[at::product::a]) + line.offsets[0],
                                 .b = row,
                                 .bias = bias ? row + width() : nullptr,
                                 .dst = static_cast<float*>(arguments[at::product::dst]) + line.offsets[1],
                                 .a_stride = line.strides[0],
                                 .b_stride = 0,
                                 .dst_stride = line.strides[1]};
          multiply(args, line.pixels, line.channels);
        });
      });
    }
  }

 private:
  [[nodiscard]] const Lines& lines() const { return samples_.lines(); }
  [[nodiscard]] std::int64_t width() const { return lines().channels() * lines().width_factor(); }

  void fill(float* row, const float* numbers) const {
    if (one_for_all_) {
      std::fill_n(row, width(), *numbers);
    } else {
      norm::repeat_channels(numbers, lines().channels(), lines().width_factor(), row);
    }
  }

  tensor::Layout b_;
  bool one_for_all_;
  SampleLines samples_;
  int team_;
};

}  // namespace

std::unique_ptr<Primitive> make_product(const model::ProductTask& task, int threads) {
  const Reach reach = reach_of(task.b.extents, task.dst.extents);
  // A tensor of one pixel may have a bias like any other.
  const bool spread = (reach == Reach::item || reach == Reach::pixel) && tensor::pixels(task.dst.extents) > 1;
  if (spread) return std::make_unique<SpreadProduct>(task, reach, threads);
  return std::make_unique<RowProduct>(task, by_sample(reach, task.dst.extents), threads);
}

}  // namespace orthant::kernels::product
