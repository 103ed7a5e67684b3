#pragma once

#include <cstdint>

namespace orthant::kernels::product {

/// dst = a * b + bias on a line of pixels. b is a row of its own for every pixel, or one row for all (b_stride 0);
/// bias is null or a row.
struct ProductLine {
  const float* a;
  const float* b;
  const float* bias;
  float* dst;
  std::int64_t a_stride, b_stride, dst_stride;
};
void multiply(const ProductLine& line, std::int64_t pixels, std::int64_t channels);

/// dst = a * b, with one number b per pixel.
void multiply_pixels(const ProductLine& line, std::int64_t pixels, std::int64_t channels);

/// sums += a * b, item by item of a row.
struct ProductSumsLine {
  const float* a;
  const float* b;
  float* sums;
  std::int64_t a_stride, b_stride;
};
void add_products(const ProductSumsLine& line, std::int64_t pixels, std::int64_t channels);

/// dst = sum over channels of a * b, one number per pixel.
void sum_products(const ProductLine& line, std::int64_t pixels, std::int64_t channels);

/// dst = src or weights * src; weights is a row.
struct PReluLine {
  const float* src;
  const float* weights;
  float* dst;
  std::int64_t src_stride, dst_stride;
};
void prelu(const PReluLine& line, std::int64_t pixels, std::int64_t channels);

/// diff_src = diff_dst or weights * diff_dst, and sums += diff_dst * src where src is not positive.
struct PReluGradientLine {
  const float* diff_dst;
  const float* src;
  const float* weights;
  float* diff_src;
  float* sums;
  std::int64_t diff_dst_stride, src_stride, diff_src_stride;
};
void prelu_gradient(const PReluGradientLine& line, std::int64_t pixels, std::int64_t channels);

}  // namespace orthant::kernels::product
