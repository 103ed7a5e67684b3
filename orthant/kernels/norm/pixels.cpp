#include "orthant/kernels/channel_sums.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/norm/norm.hpp"
#include "orthant/kernels/simd.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/norm/pixels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::norm::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

/// The sum over a row of term(tag, i).
template <class Term>
HWY_INLINE double row_sum(std::int64_t channels, Term term) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  auto sums = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= channels; i += lanes) sums = hn::Add(sums, term(d, i));
  auto sum = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums)));
  for (; i < channels; ++i) sum += static_cast<double>(hn::GetLane(term(one, i)));
  return sum;
}

void pixel_norm_line(const PixelNorm& line, std::int64_t pixels, std::int64_t channels) {
  const PixelNorm args = line;
  const double share = 1 / static_cast<double>(channels);
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* x = args.x + p * args.x_stride;
    float* y = args.y + p * args.y_stride;
    const auto sum = row_sum(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      prefetch_ahead(x + i);
      return hn::LoadU(d, x + i);
    });
    const auto mean = static_cast<float>(sum * share);
    const double squares = row_sum(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
      return hn::Mul(centred, centred);
    });
    const auto scale = static_cast<float>(1 / std::sqrt(squares * share + args.epsilon));
    args.saved[2 * p] = mean;
    args.saved[2 * p + 1] = scale;
    for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      auto z = hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, scale));
      if (args.gamma) z = hn::MulAdd(z, hn::LoadU(d, args.gamma + i), hn::LoadU(d, args.beta + i));
      hn::StoreU(z, d, y + i);
    });
  }
}

void pixel_norm_gradient_line(const PixelNormGradient& line, std::int64_t pixels, std::int64_t channels) {
  const PixelNormGradient args = line;
  const double share = 1 / static_cast<double>(channels);
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* diff_y = args.diff_y + p * args.diff_y_stride;
    const float* x = args.x + p * args.x_stride;
    float* diff_x = args.diff_x + p * args.diff_x_stride;
    const float mean = args.saved[2 * p], scale = args.saved[2 * p + 1];
    const auto weighted = [&](auto d, std::int64_t i) HWY_ATTR {
      const auto g = hn::LoadU(d, diff_y + i);
      return args.gamma ? hn::Mul(g, hn::LoadU(d, args.gamma + i)) : g;
    };
    const auto normal = [&](auto d, std::int64_t i) HWY_ATTR {
      return hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, scale));
    };
    const auto sum = row_sum(channels, weighted);
    const auto product =
        row_sum(channels, [&](auto d, std::int64_t i) HWY_ATTR { return hn::Mul(weighted(d, i), normal(d, i)); });
    const auto offset = static_cast<float>(sum * share), factor = static_cast<float>(product * share);
    for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      prefetch_ahead(diff_y + i);
      prefetch_ahead(x + i);
      const auto xhat = normal(d, i);
      const auto g = hn::LoadU(d, diff_y + i);
      const auto through = hn::MulAdd(xhat, hn::Set(d, factor), hn::Set(d, offset));
      const auto result = hn::Mul(hn::Set(d, scale), hn::Sub(weighted(d, i), through));
      if (args.gamma) {
        hn::StoreU(hn::MulAdd(g, xhat, hn::LoadU(d, args.gamma_sums + i)), d, args.gamma_sums + i);
        hn::StoreU(hn::Add(g, hn::LoadU(d, args.beta_sums + i)), d, args.beta_sums + i);
      }
      hn::StoreU(result, d, diff_x + i);
    });
  }
}

}  // namespace
}  // namespace orthant::kernels::norm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::norm {
namespace {

HWY_EXPORT(pixel_norm_line);
HWY_EXPORT(pixel_norm_gradient_line);

/// Where `saved` has the numbers of a pixel, as lines count them.
tensor::Layout saved_layout(const tensor::Layout& x) {
  tensor::Layout layout = tensor::channels_last({x.extents.n, 2, x.extents.d, x.extents.h, x.extents.w});
  layout.extents = x.extents;
  return layout;
}

class ForwardPixelNorm final : public Primitive {
 public:
  ForwardPixelNorm(const model::PixelNormTask& task, int threads)
      : epsilon_(task.epsilon),
        saved_(saved_layout(task.x)),
        lines_({&task.x, &task.y, &saved_}),
        team_(team_for(lines_.items(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:pixel_norm:" + simd_target(); }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    namespace to = at::pixel_norm_forward;
    run_team(team_, [&](int thread, int team) {
      const std::int64_t begin = share(lines_.pixels(), thread, team), end = share(lines_.pixels(), thread + 1, team);
      lines_.visit(begin, end, [&](const Line& line) {
        const PixelNorm args{.x = static_cast<const float*>(arguments[to::x]) + line.offsets[0],
                             .gamma = static_cast<const float*>(arguments[to::gamma]),
                             .beta = static_cast<const float*>(arguments[to::beta]),
                             .saved = static_cast<float*>(arguments[to::saved]) + line.offsets[2],
                             .y = static_cast<float*>(arguments[to::y]) + line.offsets[1],
                             .x_stride = line.strides[0],
                             .y_stride = line.strides[1],
                             .epsilon = epsilon_};
        HWY_DYNAMIC_DISPATCH(pixel_norm_line)(args, line.pixels, line.channels);
      });
    });
  }

 private:
  double epsilon_;
  tensor::Layout saved_;
  Lines lines_;
  int team_;
};

class BackwardPixelNorm final : public Primitive {
 public:
  BackwardPixelNorm(const model::PixelNormTask& task, int threads)
      : task_(task),
        saved_(saved_layout(task.x)),
        lines_({&task.y, &task.x, &given_or(task.diff_x, task.x), &saved_}),
        team_(team_for(lines_.items(), threads)),
        sums_(2, lines_.channels(), 1, team_) {}

  [[nodiscard]] std::string name() const override { return "orthant:pixel_norm:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return sums_.bytes(); }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    for (int thread = 0; thread < team_; ++thread) sums_.clear(scratch, thread);
    run_team(team_, [&](int thread, int team) {
      RowCount count;
      const std::int64_t begin = share(lines_.pixels(), thread, team), end = share(lines_.pixels(), thread + 1, team);
      for (std::int64_t first = begin; first < end; first += ChannelSums::block_rows) {
        lines_.visit(first, std::min(first + ChannelSums::block_rows, end), [&](const Line& line) {
          if (count.is_full(line.pixels)) sums_.flush(scratch, thread);
          HWY_DYNAMIC_DISPATCH(pixel_norm_gradient_line)
          (gradient(arguments, line, scratch, thread), line.pixels, line.channels);
        });
      }
      sums_.flush(scratch, thread);
    });
    if (!task_.affine) return;
    write(static_cast<float*>(arguments[at::pixel_norm_backward::diff_gamma]), scratch, 0);
    write(static_cast<float*>(arguments[at::pixel_norm_backward::diff_beta]), scratch, 1);
  }

 private:
  PixelNormGradient gradient(std::span<void* const> arguments, const Line& line, void* scratch, int thread) const {
    namespace to = at::pixel_norm_backward;
    return {.diff_y = static_cast<const float*>(arguments[to::diff_y]) + line.offsets[0],
            .x = static_cast<const float*>(arguments[to::x]) + line.offsets[1],
            .gamma = static_cast<const float*>(arguments[to::gamma]),
            .saved = static_cast<const float*>(arguments[to::saved]) + line.offsets[3],
            .diff_x = static_cast<float*>(arguments[to::diff_x]) + line.offsets[2],
            .gamma_sums = sums_.block(scratch, thread, 0),
            .beta_sums = sums_.block(scratch, thread, 1),
            .diff_y_stride = line.strides[0],
            .x_stride = line.strides[1],
            .diff_x_stride = line.strides[2]};
  }

  void write(float* to, const void* scratch, int kind) const {
    for (std::int64_t c = 0; c < lines_.channels(); ++c)
      to[c] = static_cast<float>(sums_.total(scratch, team_, kind, c)) + (task_.accumulate ? to[c] : 0.0F);
  }

  model::PixelNormTask task_;
  tensor::Layout saved_;
  Lines lines_;
  int team_;
  ChannelSums sums_;
};

}  // namespace

std::unique_ptr<Primitive> make_pixel_norm(const model::PixelNormTask& task, int threads) {
  if (task.pass == model::Pass::forward) return std::make_unique<ForwardPixelNorm>(task, threads);
  return std::make_unique<BackwardPixelNorm>(task, threads);
}

}  // namespace orthant::kernels::norm
#endif
