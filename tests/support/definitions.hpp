#pragma once

#include "tests/support/reference.hpp"

namespace orthant::test {

/// What the arguments held before the call.
using Before = std::vector<Numbers>;
using Arguments = std::span<Numbers* const>;

/// One definition per task. `before` has the old contents (empty for null), `now` receives the results.
void define(const model::ConvTask& task, const Before& before, Arguments now);
/// The form of prepared weights is the kernels' own. Here they are the weights followed by zeros: a convolution that
/// reads them finds the weights where it looks for them.
void define(const model::PrepareWeightsTask& task, const Before& before, Arguments now);
void define(const model::DenseTask& task, const Before& before, Arguments now);
void define(const model::PoolTask& task, const Before& before, Arguments now);
void define(const model::NormSumsTask& task, const Before& before, Arguments now);
void define(const model::NormTask& task, const Before& before, Arguments now);
void define(const model::PixelNormTask& task, const Before& before, Arguments now);
void define(const model::LossSumsTask& task, const Before& before, Arguments now);
void define(const model::LossTask& task, const Before& before, Arguments now);
void define(const model::UpdateTask& task, const kernels::Context& context, const Before& before, Arguments now);

/// Where item `i` of the box lies.
inline std::size_t item(const tensor::Layout& layout, const tensor::Shape& i) {
  const tensor::Shape& stride = layout.strides;
  return static_cast<std::size_t>(layout.offset + i.n * stride.n + i.c * stride.c + i.d * stride.d + i.h * stride.h +
                                  i.w * stride.w);
}

double activate(const model::Activation& activation, double z);
/// activation'(z), given y = activation(z).
double slope_at(const model::Activation& activation, double y);

/// The same from what the task gives it: y, or z for an activation whose derivative is taken from that.
double slope_from(const model::Activation& activation, double value);
/// activation'(z).
double slope_before(const model::Activation& activation, double z);

/// Calls visit(position) for every position of a box of `extents`, w fastest.
template <class Visit>
void for_each_item(const tensor::Shape& extents, Visit visit) {
  tensor::Shape i;
  for (i.n = 0; i.n < extents.n; ++i.n) {
    for (i.c = 0; i.c < extents.c; ++i.c) {
      for (i.d = 0; i.d < extents.d; ++i.d) {
        for (i.h = 0; i.h < extents.h; ++i.h) {
          for (i.w = 0; i.w < extents.w; ++i.w) visit(i);
        }
      }
    }
  }
}

/// Calls visit(position) with c = 0 for every pixel.
template <class Visit>
void for_each_pixel(tensor::Shape extents, Visit visit) {
  extents.c = 1;
  for_each_item(extents, visit);
}

/// Calls visit(src, tap) for every tap of `window` at dst position `i` that lies inside `extents`;
/// taps are numbered with w fastest.
template <class Visit>
void for_each_tap(const tensor::Window& window, const tensor::Shape& i, const tensor::Shape& extents, Visit visit) {
  tensor::Shape src = i;
  std::int64_t tap = 0;
  for (std::int64_t kd = 0; kd < window.size.d; ++kd) {
    for (std::int64_t kh = 0; kh < window.size.h; ++kh) {
      for (std::int64_t kw = 0; kw < window.size.w; ++kw, ++tap) {
        src.d = i.d * window.stride.d + kd * window.dilation.d - window.pad_lo.d;
        src.h = i.h * window.stride.h + kh * window.dilation.h - window.pad_lo.h;
        src.w = i.w * window.stride.w + kw * window.dilation.w - window.pad_lo.w;
        const bool inside =
            src.d >= 0 && src.d < extents.d && src.h >= 0 && src.h < extents.h && src.w >= 0 && src.w < extents.w;
        if (inside) visit(src, tap);
      }
    }
  }
}

}  // namespace orthant::test
