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
        places_(task.groups, task.x),
        samples_(places_.per_sample(), {&task.x}),
        lines_(samples_.lines()),
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
    std::fill_n(totals, 2 * samples_.parts() * places_.count(), 0.0);
    if (lines_.pixels() == 0) return;
    auto* shift = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + sums_.bytes());
    const auto count = static_cast<double>(lines_.pixels());
    for (std::int64_t sample = 0; sample < samples_.parts(); ++sample) {
      repeat_channels(x + first_pixel_ + sample * samples_.step(0), lines_.channels(), lines_.width_factor(), shift);
      sum(x, sample, shift, scratch);
      for (std::int64_t c = 0; c < lines_.channels(); ++c) {
        const auto first = static_cast<double>(shift[c]);
        const double total = sums_.total(scratch, team_, 0, c);
        totals[places_.first(sample, c)] += total + count * first;
        totals[places_.second(sample, c)] += sums_.total(scratch, team_, 1, c) + first * (2 * total + count * first);
      }
    }
  }

 private:
  void sum(const float* x, std::int64_t sample, const float* shift, void* scratch) const {
    for (int thread = 0; thread < team_; ++thread) sums_.clear(scratch, thread);
    run_team(team_, [&](int thread, int team) {
      RowCount count;
      samples_.visit_part(sample, thread, team, ChannelSums::block_rows, [&](const Line& line) {
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
  Places places_;
  SampleLines samples_;
  const Lines& lines_;
  int team_;
  ChannelSums sums_;
};

class NormBackwardSums final : public Primitive {
 public:
  NormBackwardSums(const model::NormSumsTask& task, int threads)
      : activation_(task.activation),
        accumulate_(task.accumulate),
        places_(task.groups, task.x),
        samples_(places_.per_sample(), {&given_or(task.diff_y, y_of(task)), &given_or(task.diff_y2, y_of(task)),
                                        &task.x, &y_of(task), &given_or(task.diff_residual, y_of(task))}),
        lines_(samples_.lines()),
        team_(team_for(lines_.items(), threads)),
        sums_(2, lines_.channels(), lines_.width_factor(), team_) {
    elementwise::check_invertible(task.activation);
  }

  [[nodiscard]] std::string name() const override { return "orthant:norm_sums:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return sums_.bytes() + 2 * lines_.channels() * static_cast<std::int64_t>(sizeof(double)) +
           3 * sums_.width() * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    auto* gradients = reinterpret_cast<double*>(static_cast<std::byte*>(scratch) + sums_.bytes());
    auto* memory = reinterpret_cast<float*>(gradients + 2 * lines_.channels());
    std::fill_n(gradients, 2 * lines_.channels(), 0.0);
    std::fill_n(static_cast<double*>(arguments[at::norm_sums_backward::sums]), 2 * samples_.parts() * places_.count(),
                0.0);
    for (std::int64_t sample = 0; sample < samples_.parts(); ++sample) {
      const NormGradientRows rows = gradient_rows(arguments, lines_, places_, sample, memory);
      sum(arguments, sample, rows, scratch);
      finish(arguments, sample, scratch, gradients);
    }
    write_gradients(arguments, gradients);
  }

 private:
  static const tensor::Layout& y_of(const model::NormSumsTask& task) { return given_or(task.y, task.x); }

  void sum(std::span<void* const> arguments, std::int64_t sample, const NormGradientRows& rows, void* scratch) const {
    constexpr std::size_t dz = 4;
    auto* diff_residual = static_cast<float*>(arguments[at::norm_sums_backward::diff_residual]);
    for (int thread = 0; thread < team_; ++thread) sums_.clear(scratch, thread);
    run_team(team_, [&](int thread, int team) {
      RowCount count;
      samples_.visit_part(sample, thread, team, ChannelSums::block_rows, [&](const Line& line) {
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

  void finish(std::span<void* const> arguments, std::int64_t sample, const void* scratch, double* gradients) const {
    const std::int64_t channels = lines_.channels();
    const auto* saved = static_cast<const float*>(arguments[at::norm_sums_backward::saved]);
    const auto* gamma = static_cast<const float*>(arguments[at::norm_sums_backward::gamma]);
    auto* totals = static_cast<double*>(arguments[at::norm_sums_backward::sums]);
    for (std::int64_t c = 0; c < channels; ++c) {
      const double sum = sums_.total(scratch, team_, 0, c);
      const double product = sums_.total(scratch, team_, 1, c) * static_cast<double>(saved[places_.second(sample, c)]);
      const double weight = places_.per_sample() && gamma ? static_cast<double>(gamma[c]) : 1.0;
      totals[places_.first(sample, c)] += weight * sum;
      totals[places_.second(sample, c)] += weight * product;
      gradients[c] += product;
      gradients[channels + c] += sum;
    }
  }

  void write_gradients(std::span<void* const> arguments, const double* gradients) const {
    const std::int64_t channels = lines_.channels();
    for (const std::size_t i : {at::norm_sums_backward::diff_gamma.index, at::norm_sums_backward::diff_beta.index}) {
      auto* to = static_cast<float*>(arguments[i]);
      for (std::int64_t c = 0; to && c < channels; ++c)
        to[c] = static_cast<float>(gradients[c]) + (accumulate_ ? to[c] : 0.0F);
      gradients += channels;
    }
  }

  model::Activation activation_;
  bool accumulate_;
  Places places_;
  SampleLines samples_;
  const Lines& lines_;
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
