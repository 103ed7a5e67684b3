#include "orthant/kernels/product/rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/product/rows.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::product::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

void multiply_line(const ProductLine& args, std::int64_t pixels, std::int64_t channels) {
  const ProductLine line = args;  // a copy that no store can change stays in registers
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* a = line.a + p * line.a_stride;
    const float* b = line.b + p * line.b_stride;
    float* dst = line.dst + p * line.dst_stride;
    for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      prefetch_ahead(a + i);
      if (line.b_stride != 0) prefetch_ahead(b + i);
      auto product = hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
      if (line.bias) product = hn::Add(product, hn::LoadU(d, line.bias + i));
      hn::StoreU(product, d, dst + i);
    });
  }
}

void multiply_pixels_line(const ProductLine& args, std::int64_t pixels, std::int64_t channels) {
  const ProductLine line = args;
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* a = line.a + p * line.a_stride;
    const float factor = line.b[p * line.b_stride];
    float* dst = line.dst + p * line.dst_stride;
    for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      prefetch_ahead(a + i);
      hn::StoreU(hn::Mul(hn::LoadU(d, a + i), hn::Set(d, factor)), d, dst + i);
    });
  }
}

template <int Rows>
HWY_INLINE void add_rows(const ProductSumsLine& line, const float* a, const float* b, std::int64_t channels) {
  for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
    auto sum = hn::LoadU(d, line.sums + i);
    for (int r = 0; r < Rows; ++r) {
      prefetch_ahead(a + r * line.a_stride + i);
      prefetch_ahead(b + r * line.b_stride + i);
      sum = hn::MulAdd(hn::LoadU(d, a + r * line.a_stride + i), hn::LoadU(d, b + r * line.b_stride + i), sum);
    }
    hn::StoreU(sum, d, line.sums + i);
  });
}

void add_products_line(const ProductSumsLine& args, std::int64_t pixels, std::int64_t channels) {
  const ProductSumsLine line = args;
  std::int64_t p = 0;
  for (; p + 4 <= pixels; p += 4) add_rows<4>(line, line.a + p * line.a_stride, line.b + p * line.b_stride, channels);
  for (; p < pixels; ++p) add_rows<1>(line, line.a + p * line.a_stride, line.b + p * line.b_stride, channels);
}

void sum_products_line(const ProductLine& args, std::int64_t pixels, std::int64_t channels) {
  const hn::ScalableTag<float> d;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const ProductLine line = args;
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* a = line.a + p * line.a_stride;
    const float* b = line.b + p * line.b_stride;
    auto sums = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + lanes <= channels; i += lanes) {
      prefetch_ahead(a + i);
      prefetch_ahead(b + i);
      sums = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sums);
    }
    float sum = hn::GetLane(hn::SumOfLanes(d, sums));
    for (; i < channels; ++i) sum += a[i] * b[i];
    line.dst[p * line.dst_stride] = sum;
  }
}

void prelu_line(const PReluLine& args, std::int64_t pixels, std::int64_t channels) {
  const PReluLine line = args;
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* src = line.src + p * line.src_stride;
    float* dst = line.dst + p * line.dst_stride;
    for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      prefetch_ahead(src + i);
      const auto z = hn::LoadU(d, src + i);
      const auto below = hn::Mul(z, hn::LoadU(d, line.weights + i));
      hn::StoreU(hn::IfThenElse(hn::Gt(z, hn::Zero(d)), z, below), d, dst + i);
    });
  }
}

void prelu_gradient_line(const PReluGradientLine& args, std::int64_t pixels, std::int64_t channels) {
  const PReluGradientLine line = args;
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* diff_dst = line.diff_dst + p * line.diff_dst_stride;
    const float* src = line.src + p * line.src_stride;
    float* diff_src = line.diff_src + p * line.diff_src_stride;
    for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      prefetch_ahead(diff_dst + i);
      prefetch_ahead(src + i);
      const auto g = hn::LoadU(d, diff_dst + i);
      const auto z = hn::LoadU(d, src + i);
      const auto positive = hn::Gt(z, hn::Zero(d));
      const auto product = hn::IfThenZeroElse(positive, hn::Mul(g, z));
      hn::StoreU(hn::Add(hn::LoadU(d, line.sums + i), product), d, line.sums + i);
      hn::StoreU(hn::IfThenElse(positive, g, hn::Mul(g, hn::LoadU(d, line.weights + i))), d, diff_src + i);
    });
  }
}

}  // namespace
}  // namespace orthant::kernels::product::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::product {

HWY_EXPORT(multiply_line);
HWY_EXPORT(multiply_pixels_line);
HWY_EXPORT(add_products_line);
HWY_EXPORT(sum_products_line);
HWY_EXPORT(prelu_line);
HWY_EXPORT(prelu_gradient_line);

void multiply(const ProductLine& line, std::int64_t pixels, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(multiply_line)(line, pixels, channels);
}
void multiply_pixels(const ProductLine& line, std::int64_t pixels, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(multiply_pixels_line)(line, pixels, channels);
}
void add_products(const ProductSumsLine& line, std::int64_t pixels, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(add_products_line)(line, pixels, channels);
}
void sum_products(const ProductLine& line, std::int64_t pixels, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(sum_products_line)(line, pixels, channels);
}
void prelu(const PReluLine& line, std::int64_t pixels, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(prelu_line)(line, pixels, channels);
}
void prelu_gradient(const PReluGradientLine& line, std::int64_t pixels, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(prelu_gradient_line)(line, pixels, channels);
}

}  // namespace orthant::kernels::product
#endif
