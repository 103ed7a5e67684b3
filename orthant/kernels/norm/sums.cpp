#include "orthant/kernels/elementwise/activation.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/norm/norm.hpp"
#include "orthant/kernels/simd.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/norm/sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/norm/gradient_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::norm::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

/// `Rows` rows at a time, so that the sums stay in registers for a while.
template <int Rows>
HWY_INLINE void sum_rows(const NormSums& args, const float* row, std::int64_t channels) {
  for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto shift = hn::LoadU(d, args.shift + i);
    auto sum = hn::LoadU(d, args.sum + i);
    auto squares = hn::LoadU(d, args.squares + i);
    for (int r = 0; r < Rows; ++r) {
      prefetch_ahead(row + r * args.x_stride + i);
      const auto x = hn::Sub(hn::LoadU(d, row + r * args.x_stride + i), shift);
      sum = hn::Add(sum, x);
      squares = hn::MulAdd(x, x, squares);
    }
    hn::StoreU(sum, d, args.sum + i);
    hn::StoreU(squares, d, args.squares + i);
  });
}

void norm_sums_line(const NormSums& line, std::int64_t pixels, std::int64_t channels) {
  const NormSums args = line;  // a copy that no store can change stays in registers
  std::int64_t p = 0;
  for (; p + 4 <= pixels; p += 4) sum_rows<4>(args, args.x + p * args.x_stride, channels);
  for (; p < pixels; ++p) sum_rows<1>(args, args.x + p * args.x_stride, channels);
}

template <int Rows, class A>
HWY_INLINE void sum_rows(const Gradient<A>& gradient, const NormGradientSums& sums, std::int64_t p,
                         std::int64_t channels) {
  for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
    auto sum = hn::LoadU(d, sums.sum + i);
    auto product = hn::LoadU(d, sums.product + i);
    for (int r = 0; r < Rows; ++r) {
      const auto centred = gradient.centred(d, p + r, i);
      const auto dz = gradient.dz(d, centred, p + r, i);
      sum = hn::Add(sum, dz);
      product = hn::MulAdd(dz, centred, product);
      if (sums.dz) hn::StoreU(dz, d, sums.dz + (p + r) * sums.dz_stride + i);
    }
    hn::StoreU(sum, d, sums.sum + i);
    hn::StoreU(product, d, sums.product + i);
  });
}

void norm_gradient_sums_line(const NormGradient& args, const NormGradientSums& line, std::int64_t pixels,
                             std::int64_t channels) {
  with_activation(args.kind, args.slope, [&]<class A>(A activation) HWY_ATTR {
    const Gradient<A> gradient{activation, args};
    const NormGradientSums sums = line;
    std::int64_t p = 0;
    for (; p + 4 <= pixels; p += 4) sum_rows<4>(gradient, sums, p, channels);
    for (; p < pixels; ++p) sum_rows<1>(gradient, sums, p, channels);
  });
}

}  // namespace
}  // namespace orthant::kernels::norm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::norm {
namespace {

HWY_EXPORT(norm_sums_line);
HWY_EXPORT(norm_gradient_sums_line);

class NormForwardSums final : public Primitive {
 public:
  NormForwardSums(const model::NormSumsTask& task, int threads)
      : first_pixel_(task.x.offset),
        lines_({&task.x}),
        team_(team_for(lines_.items(), threads)),
        sums_(2, lines_.channels(), lines_.width_factor(), team_) {}

  [[nodiscard]] std::string name() const override { return "orthant:norm_sums:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return sums_.bytes() + sums_.width() * static_cast<std::int64_t>(sizeof(float));
  }

  /// Sums x - (first pixel), which is near the mean, in blocks of float: nothing cancels where the mean is far from
  /// zero. The shift is undone in double.
  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const auto* x = static_cast<const float*>(arguments[at::norm_sums_forward::x]);
    auto* totals = static_cast<double*>(arguments[at::norm_sums_forward::sums]);
    const std::int64_t channels = lines_.channels();
    if (lines_.pixels() == 0) {
      std::fill_n(totals, 2 * channels, 0.0);
      return;
    }
    auto* shift = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + sums_.bytes());
    repeat_channels(x + first_pixel_, channels, lines_.width_factor(), shift);
    sum(x, shift, scratch);
    const auto count = static_cast<double>(lines_.pixels());
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto first = static_cast<double>(shift[c]);
      const double total = sums_.total(scratch, team_, 0, c);
      totals[c] = total + count * first;
      totals[channels + c] = sums_.total(scratch, team_, 1, c) + first * (2 * total + count * first);
    }
  }

 private:
  void sum(const float* x, const float* shift, void* scratch) const {
    for (int thread = 0; thread < team_; ++thread) sums_.clear(scratch, thread);
    run_team(team_, [&](int thread, int team) {
      RowCount count;
      lines_.visit_part(thread, team, ChannelSums::block_rows, [&](const Line& line) {
        if (count.is_full(line.pixels)) sums_.flush(scratch, thread);
        const NormSums args{.x = x + line.offsets[0],
                            .shift = shift,
                            .sum = sums_.block(scratch, thread, 0),
                            .squares = sums_.block(scratch, thread, 1),
                            .x_stride = line.strides[0]};
        HWY_DYNAMIC_DISPATCH(norm_sums_line)(args, line.pixels, line.channels);
      });
      sums_.flush(scratch, thread);
    });
  }

  std::int64_t first_pixel_;
  Lines lines_;
  int team_;
  ChannelSums sums_;
};

class NormBackwardSums final : public Primitive {
 public:
  NormBackwardSums(const model::NormSumsTask& task, int threads)
      : activation_(task.activation),
        accumulate_(task.accumulate),
        lines_({&given_or(task.diff_y, y_of(task)), &given_or(task.diff_y2, y_of(task)), &task.x, &y_of(task),
                &given_or(task.diff_residual, y_of(task))}),
        team_(team_for(lines_.items(), threads)),
        sums_(2, lines_.channels(), lines_.width_factor(), team_) {
    elementwise::check_invertible(task.activation);
  }

  [[nodiscard]] std::string name() const override { return "orthant:norm_sums:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return sums_.bytes() + 3 * sums_.width() * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    auto* memory = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + sums_.bytes());
    const NormGradientRows rows = gradient_rows(arguments, lines_, memory);
    sum(arguments, rows, scratch);
    finish(arguments, scratch);
  }

 private:
  static const tensor::Layout& y_of(const model::NormSumsTask& task) { return given_or(task.y, task.x); }

  void sum(std::span<void* const> arguments, const NormGradientRows& rows, void* scratch) const {
    constexpr std::size_t dz = 4;
    auto* diff_residual = static_cast<float*>(arguments[at::norm_sums_backward::diff_residual]);
    for (int thread = 0; thread < team_; ++thread) sums_.clear(scratch, thread);
    run_team(team_, [&](int thread, int team) {
      RowCount count;
      lines_.visit_part(thread, team, ChannelSums::block_rows, [&](const Line& line) {
        if (count.is_full(line.pixels)) sums_.flush(scratch, thread);
        const NormGradientSums sums{.sum = sums_.block(scratch, thread, 0),
                                    .product = sums_.block(scratch, thread, 1),
                                    .dz = diff_residual ? diff_residual + line.offsets[dz] : nullptr,
                                    .dz_stride = line.strides[dz]};
        HWY_DYNAMIC_DISPATCH(norm_gradient_sums_line)
        (gradient_of(activation_, arguments, rows, line), sums, line.pixels, line.channels);
      });
      sums_.flush(scratch, thread);
    });
  }

  void finish(std::span<void* const> arguments, const void* scratch) const {
    const std::int64_t channels = lines_.channels();
    const auto* inverse_std = static_cast<const float*>(arguments[at::norm_sums_backward::saved]) + channels;
    auto* totals = static_cast<double*>(arguments[at::norm_sums_backward::sums]);
    auto* diff_gamma = static_cast<float*>(arguments[at::norm_sums_backward::diff_gamma]);
    auto* diff_beta = static_cast<float*>(arguments[at::norm_sums_backward::diff_beta]);
    for (std::int64_t c = 0; c < channels; ++c) {
      totals[c] = sums_.total(scratch, team_, 0, c);
      totals[channels + c] = sums_.total(scratch, team_, 1, c) * static_cast<double>(inverse_std[c]);
      diff_gamma[c] = static_cast<float>(totals[channels + c]) + (accumulate_ ? diff_gamma[c] : 0.0F);
      diff_beta[c] = static_cast<float>(totals[c]) + (accumulate_ ? diff_beta[c] : 0.0F);
    }
  }

  model::Activation activation_;
  bool accumulate_;
  Lines lines_;
  int team_;
  ChannelSums sums_;
};

}  // namespace

std::unique_ptr<Primitive> make_norm_sums(const model::NormSumsTask& task, int threads) {
  if (task.pass == model::Pass::forward) return std::make_unique<NormForwardSums>(task, threads);
  return std::make_unique<NormBackwardSums>(task, threads);
}

}  // namespace orthant::kernels::norm
#endif
