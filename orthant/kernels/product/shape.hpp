#pragma once

#include "orthant/base/error.hpp"
#include "orthant/tensor/layout.hpp"

namespace orthant::kernels::product {

/// What one number of the smaller factor of a product stands for.
enum class Reach {
  item,     ///< one item: it has the shape of the other
  channel,  ///< a channel, of every sample or of all
  pixel,    ///< all channels of a pixel
  sample,   ///< a whole sample, or all of them
};

inline Reach reach_of(const tensor::Shape& small, const tensor::Shape& all) {
  const bool cells = tensor::spatial(small) == tensor::spatial(all), one = tensor::spatial(small) == tensor::cube(1);
  if (small == all) return Reach::item;
  if (one && small.c == all.c && (small.n == all.n || small.n == 1)) return Reach::channel;
  if (cells && small.c == 1 && small.n == all.n) return Reach::pixel;
  if (one && small.c == 1 && (small.n == all.n || small.n == 1)) return Reach::sample;
  base::fail(base::Exit::internal, "a product of {} and {} is not supported", tensor::to_text(all),
             tensor::to_text(small));
}

/// What stands for a pixel stands for a sample where samples have one cell; else as it is.
inline Reach by_sample(Reach reach, const tensor::Shape& all) {
  return reach == Reach::pixel && tensor::spatial(all) == tensor::cube(1) ? Reach::sample : reach;
}

/// The layout with the extents of `all`, for factors whose numbers stand for all channels of a pixel: lines of it lead
/// to the number of a pixel, and nothing else is read.
inline tensor::Layout spread_over_channels(const tensor::Layout& small, const tensor::Shape& all) {
  tensor::Layout layout = small;
  layout.extents = all;
  layout.strides.c = 1;
  return layout;
}

}  // namespace orthant::kernels::product
