#include "orthant/kernels/activation.hpp"
#include "orthant/kernels/norm.hpp"
#include "orthant/kernels/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/norm_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/activation_inl.hpp"
#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::HWY_NAMESPACE {
namespace {

/// dz and x - mean of the items i of row p.
template <class A>
struct Gradient {
  A activation;
  NormGradient args;  // a copy that no store can change stays in registers

  template <class D>
  HWY_INLINE hn::Vec<D> centred(D d, std::int64_t p, std::int64_t i) const {
    prefetch_ahead(args.x + p * args.x_stride + i);
    return hn::Sub(hn::LoadU(d, args.x + p * args.x_stride + i), hn::LoadU(d, args.mean + i));
  }

  template <class D>
  HWY_INLINE hn::Vec<D> dz(D d, hn::Vec<D> centred_x, std::int64_t p, std::int64_t i) const {
    prefetch_ahead(args.diff_y + p * args.diff_y_stride + i);
    auto g = hn::LoadU(d, args.diff_y + p * args.diff_y_stride + i);
    if (args.diff_y2) g = hn::Add(g, hn::LoadU(d, args.diff_y2 + p * args.diff_y2_stride + i));
    if (args.y) {
      prefetch_ahead(args.y + p * args.y_stride + i);
      return activation.backward(d, hn::LoadU(d, args.y + p * args.y_stride + i), g);
    }
    // z exactly as the forward pass had it.
    return activation.through(d, hn::MulAdd(centred_x, hn::LoadU(d, args.scale + i), hn::LoadU(d, args.beta + i)), g);
  }
};

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

void norm_gradient_line(const NormGradient& args, const NormGradientApply& line, std::int64_t pixels,
                        std::int64_t channels) {
  with_activation(args.kind, args.slope, [&]<class A>(A activation) HWY_ATTR {
    const Gradient<A> gradient{activation, args};
    const NormGradientApply out = line;
    const float* scale = args.scale;
    for (std::int64_t p = 0; p < pixels; ++p) {
      float* diff_x = out.diff_x + p * out.diff_x_stride;
      float* diff_residual = out.diff_residual ? out.diff_residual + p * out.diff_residual_stride : nullptr;
      for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto centred = gradient.centred(d, p, i);
        const auto dz = gradient.dz(d, centred, p, i);
        const auto through = hn::MulAdd(centred, hn::LoadU(d, out.factor + i), hn::LoadU(d, out.offset + i));
        hn::StoreU(hn::Mul(hn::LoadU(d, scale + i), hn::Sub(dz, through)), d, diff_x + i);
        if (diff_residual) hn::StoreU(dz, d, diff_residual + i);
      });
    }
  });
}

}  // namespace
}  // namespace orthant::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels {
namespace {

HWY_EXPORT(norm_gradient_sums_line);
HWY_EXPORT(norm_gradient_line);

/// y says nothing where it was not kept.
const tensor::Layout& y_of(const model::NormTask& task) { return given_or(task.y, task.x); }

enum Tensor : std::size_t { diff_y, diff_y2, x, y, diff_x, diff_residual };

class NormBackward final : public Primitive {
 public:
  NormBackward(const model::NormTask& task, int threads)
      : task_(task),
        lines_({&given_or(task.diff_y, y_of(task)), &given_or(task.diff_y2, y_of(task)), &task.x, &y_of(task),
                &given_or(task.diff_x, task.x), &given_or(task.diff_residual, y_of(task))}),
        team_(team_for(lines_.items(), threads)),
        sums_(2, lines_.channels(), lines_.width_factor(), team_),
        inverse_count_(1 / static_cast<double>(task.statistics_count > 0 ? task.statistics_count : lines_.pixels())) {
    check_invertible(task.activation);
  }

  [[nodiscard]] std::string name() const override { return "orthant:norm:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return sums_.bytes() + 5 * sums_.width() * static_cast<std::int64_t>(sizeof(float));
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    const Pointers pointers = pointers_of(arguments);
    const Rows rows = rows_of(scratch);
    prepare(arguments, rows);
    const bool keeps_dz = pointers.diff_residual && !overwrites_source(pointers);
    sum(pointers, rows, keeps_dz, scratch);
    finish_sums(arguments, rows, scratch);
    keeps_dz ? apply_kept(pointers, rows) : apply(pointers, rows);
  }

 private:
  struct Pointers {
    const float* diff_y;
    const float* diff_y2;
    const float* x;
    const float* y;
    float* diff_x;
    float* diff_residual;
  };

  /// One number per channel for every pixel of a widened row.
  struct Rows {
    float* mean;
    float* scale;
    float* beta;
    float* offset;
    float* factor;
  };

  [[nodiscard]] Pointers pointers_of(std::span<void* const> arguments) const {
    return {.diff_y = static_cast<const float*>(arguments[0]),
            .diff_y2 = static_cast<const float*>(arguments[1]),
            .x = static_cast<const float*>(arguments[2]),
            .y = static_cast<const float*>(arguments[3]),
            .diff_x = static_cast<float*>(arguments[9]),
            .diff_residual = static_cast<float*>(arguments[10])};
  }

  [[nodiscard]] Rows rows_of(void* scratch) const {
    auto* first = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + sums_.bytes());
    const std::int64_t width = sums_.width();
    return {first, first + width, first + 2 * width, first + 3 * width, first + 4 * width};
  }

  /// True if the first pass must not write dz, since the second one still needs x from the same memory.
  [[nodiscard]] bool overwrites_source(const Pointers& pointers) const {
    const tensor::Layout& layout = given_or(task_.diff_residual, y_of(task_));
    return pointers.diff_residual + layout.offset == pointers.x + task_.x.offset;
  }

  void prepare(std::span<void* const> arguments, const Rows& rows) const {
    const std::int64_t channels = lines_.channels(), factor = lines_.width_factor();
    const auto* gamma = static_cast<const float*>(arguments[4]);
    const auto* saved = static_cast<const float*>(arguments[6]);
    for (std::int64_t c = 0; c < channels; ++c) rows.scale[c] = gamma[c] * saved[channels + c];
    repeat_channels(saved, channels, factor, rows.mean);
    repeat_channels(rows.scale, channels, factor, rows.scale);
    repeat_channels(static_cast<const float*>(arguments[5]), channels, factor, rows.beta);
  }

  [[nodiscard]] NormGradient gradient_of(const Pointers& pointers, const Rows& rows, const Line& line) const {
    return {.kind = task_.activation.kind,
            .slope = static_cast<float>(task_.activation.slope),
            .diff_y = pointers.diff_y + line.offsets[diff_y],
            .diff_y2 = pointers.diff_y2 ? pointers.diff_y2 + line.offsets[diff_y2] : nullptr,
            .x = pointers.x + line.offsets[x],
            .y = pointers.y ? pointers.y + line.offsets[y] : nullptr,
            .mean = rows.mean,
            .scale = rows.scale,
            .beta = rows.beta,
            .diff_y_stride = line.strides[diff_y],
            .diff_y2_stride = line.strides[diff_y2],
            .x_stride = line.strides[x],
            .y_stride = line.strides[y]};
  }

  void sum(const Pointers& pointers, const Rows& rows, bool keeps_dz, void* scratch) const {
    for (int thread = 0; thread < team_; ++thread) sums_.clear(scratch, thread);
    run_team(team_, [&](int thread, int team) {
      RowCount count;
      lines_.visit_part(thread, team, ChannelSums::block_rows, [&](const Line& line) {
        if (count.is_full(line.pixels)) sums_.flush(scratch, thread);
        const NormGradientSums sums{.sum = sums_.block(scratch, thread, 0),
                                    .product = sums_.block(scratch, thread, 1),
                                    .dz = keeps_dz ? pointers.diff_residual + line.offsets[diff_residual] : nullptr,
                                    .dz_stride = line.strides[diff_residual]};
        HWY_DYNAMIC_DISPATCH(norm_gradient_sums_line)
        (gradient_of(pointers, rows, line), sums, line.pixels, line.channels);
      });
      sums_.flush(scratch, thread);
    });
  }

  /// The gradients of gamma and beta, and what flows through the statistics.
  void finish_sums(std::span<void* const> arguments, const Rows& rows, const void* scratch) const {
    const std::int64_t channels = lines_.channels(), factor = lines_.width_factor();
    const auto* saved = static_cast<const float*>(arguments[6]);
    const double share_of_item = task_.training ? inverse_count_ : 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto inverse_std = static_cast<double>(saved[channels + c]);
      const double total = sums_.total(scratch, team_, 0, c);
      const double product = sums_.total(scratch, team_, 1, c) * inverse_std;
      static_cast<float*>(arguments[7])[c] = static_cast<float>(product);
      static_cast<float*>(arguments[8])[c] = static_cast<float>(total);
      rows.offset[c] = static_cast<float>(total * share_of_item);
      rows.factor[c] = static_cast<float>(product * inverse_std * share_of_item);
    }
    repeat_channels(rows.offset, channels, factor, rows.offset);
    repeat_channels(rows.factor, channels, factor, rows.factor);
  }

  void apply(const Pointers& pointers, const Rows& rows) const {
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        const NormGradientApply out = outputs_of(pointers, rows, line, pointers.diff_residual);
        HWY_DYNAMIC_DISPATCH(norm_gradient_line)(gradient_of(pointers, rows, line), out, line.pixels, line.channels);
      });
    });
  }

  /// The first pass left dz in diff_residual: activation and second gradient are done.
  void apply_kept(const Pointers& pointers, const Rows& rows) const {
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        NormGradient kept = gradient_of(pointers, rows, line);
        kept.kind = model::ActivationKind::identity;
        kept.diff_y = pointers.diff_residual + line.offsets[diff_residual];
        kept.diff_y_stride = line.strides[diff_residual];
        kept.diff_y2 = kept.y = nullptr;
        const NormGradientApply out = outputs_of(pointers, rows, line, nullptr);
        HWY_DYNAMIC_DISPATCH(norm_gradient_line)(kept, out, line.pixels, line.channels);
      });
    });
  }

  static NormGradientApply outputs_of(const Pointers& pointers, const Rows& rows, const Line& line, float* residual) {
    return {.offset = rows.offset,
            .factor = rows.factor,
            .diff_x = pointers.diff_x + line.offsets[diff_x],
            .diff_residual = residual ? residual + line.offsets[diff_residual] : nullptr,
            .diff_x_stride = line.strides[diff_x],
            .diff_residual_stride = line.strides[diff_residual]};
  }

  model::NormTask task_;
  Lines lines_;
  int team_;
  ChannelSums sums_;
  double inverse_count_;
};

}  // namespace

std::unique_ptr<Primitive> make_norm_backward(const model::NormTask& task, int threads) {
  return std::make_unique<NormBackward>(task, threads);
}

}  // namespace orthant::kernels
#endif
