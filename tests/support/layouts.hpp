#pragma once

#include "orthant/tensor/layout.hpp"

namespace orthant::test {

/// How a box lies in a larger buffer.
enum class Room {
  none,      ///< dense channels-last
  channels,  ///< a channel range of a wider tensor, as in a concatenation
  halo,      ///< the interior of a tensor with a halo in d, h and w, and one sample of several
  both,
};

inline tensor::Layout layout_with(Room room, const tensor::Shape& extents) {
  tensor::Shape whole = extents;
  const bool channels = room == Room::channels || room == Room::both;
  const bool halo = room == Room::halo || room == Room::both;
  if (channels) whole.c += 5;
  if (halo) {
    whole.n += 1;
    whole.d += 2;
    whole.h += 3;
    whole.w += 2;
  }
  tensor::Layout layout = tensor::channels_last(whole);
  if (halo) layout.offset += layout.strides.n + layout.strides.d + layout.strides.h * 2 + layout.strides.w;
  if (channels) layout.offset += 3;
  layout.extents = extents;
  return layout;
}

}  // namespace orthant::test
