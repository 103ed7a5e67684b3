#include "orthant/kernels/channel_sums.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/product/rows.hpp"
#include "orthant/kernels/product/shape.hpp"
#include "orthant/kernels/simd.hpp"

namespace orthant::kernels::product {
namespace {

/// One number of dst for every item, or the sum over the channels of a pixel.
class SpreadSums final : public Primitive {
 public:
  SpreadSums(const model::ProductSumsTask& task, Reach reach, int threads)
      : by_pixel_(reach == Reach::pixel),
        dst_(by_pixel_ ? spread_over_channels(task.dst, task.a.extents) : task.dst),
        lines_({&task.a, &task.b, &dst_}),
        team_(team_for(lines_.items(), threads)) {
    if (task.accumulate) base::fail(base::Exit::internal, "products of every item are not added to others");
  }

  [[nodiscard]] std::string name() const override { return "orthant:product_sums:" + simd_target(); }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    run_team(team_, [&](int thread, int team) {
      const std::int64_t begin = share(lines_.pixels(), thread, team), end = share(lines_.pixels(), thread + 1, team);
      lines_.visit(begin, end, [&](const Line& line) {
        const ProductLine args{.a = static_cast<const float*>(arguments[at::product_sums::a]) + line.offsets[0],
                               .b = static_cast<const float*>(arguments[at::product_sums::b]) + line.offsets[1],
                               .bias = nullptr,
                               .dst = static_cast<float*>(arguments[at::product_sums::dst]) + line.offsets[2],
                               .a_stride = line.strides[0],
                               .b_stride = line.strides[1],
                               .dst_stride = line.strides[2]};
        by_pixel_ ? sum_products(args, line.pixels, line.channels) : multiply(args, line.pixels, line.channels);
      });
    });
  }

 private:
  bool by_pixel_;
  tensor::Layout dst_;
  Lines lines_;
  int team_;
};

/// Sums over space, per channel or over all of them, of every sample or of all samples.
class RowSums final : public Primitive {
 public:
  RowSums(const model::ProductSumsTask& task, Reach reach, int threads)
      : accumulate_(task.accumulate),
        dst_(task.dst),
        one_for_all_(reach == Reach::sample),
        samples_(task.dst.extents.n > 1 || task.a.extents.n == task.dst.extents.n, {&task.a, &task.b}),
        team_(team_for(lines().items(), threads)),
        sums_(1, lines().channels(), lines().width_factor(), team_) {}

  [[nodiscard]] std::string name() const override { return "orthant:product_sums:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return sums_.bytes(); }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    for (std::int64_t sample = 0; sample < samples_.parts(); ++sample) {
      add_up(arguments, sample, scratch);
      write(static_cast<float*>(arguments[at::product_sums::dst]) + dst_.offset + sample * dst_.strides.n, scratch);
    }
  }

 private:
  [[nodiscard]] const Lines& lines() const { return samples_.lines(); }

  void add_up(std::span<void* const> arguments, std::int64_t sample, void* scratch) const {
    for (int thread = 0; thread < team_; ++thread) sums_.clear(scratch, thread);
    run_team(team_, [&](int thread, int team) {
      RowCount count;
      samples_.visit_part(sample, thread, team, ChannelSums::block_rows, [&](const Line& line) {
        if (count.is_full(line.pixels)) sums_.flush(scratch, thread);
        const ProductSumsLine args{.a = static_cast<const float*>(arguments[at::product_sums::a]) + line.offsets[0],
                                   .b = static_cast<const float*>(arguments[at::product_sums::b]) + line.offsets[1],
                                   .sums = sums_.block(scratch, thread, 0),
                                   .a_stride = line.strides[0],
                                   .b_stride = line.strides[1]};
        add_products(args, line.pixels, line.channels);
      });
      sums_.flush(scratch, thread);
    });
  }

  void write(float* dst, const void* scratch) const {
    double all = 0;
    for (std::int64_t c = 0; c < lines().channels(); ++c) {
      const double sum = sums_.total(scratch, team_, 0, c);
      all += sum;
      if (!one_for_all_) dst[c] = static_cast<float>(sum) + (accumulate_ ? dst[c] : 0.0F);
    }
    if (one_for_all_) *dst = static_cast<float>(all) + (accumulate_ ? *dst : 0.0F);
  }

  bool accumulate_;
  tensor::Layout dst_;
  bool one_for_all_;
  SampleLines samples_;
  int team_;
  ChannelSums sums_;
};

}  // namespace

std::unique_ptr<Primitive> make_product_sums(const model::ProductSumsTask& task, int threads) {
  const Reach reach = reach_of(task.dst.extents, task.a.extents);
  const bool spread = reach == Reach::item || reach == Reach::pixel;
  // A sample of one cell is summed up like any other where its sums are added to others.
  const bool one_cell = tensor::spatial(task.a.extents) == tensor::cube(1);
  if (spread && !(task.accumulate && one_cell)) return std::make_unique<SpreadSums>(task, reach, threads);
  const Reach by_row = reach == Reach::item ? Reach::channel : by_sample(reach, task.a.extents);
  return std::make_unique<RowSums>(task, by_row, threads);
}

}  // namespace orthant::kernels::product
