#pragma once

#include "orthant/tensor/layout.hpp"

#include <algorithm>
#include <cstdint>

namespace orthant::kernels {

/// True if dst is so large that it leaves the cache before its next reader comes, and its pixels are whole vectors. It
/// is then better written around the cache, provided that it begins at a cache line.
inline bool writes_around_cache(const tensor::Layout& dst, std::int64_t lanes) {
  constexpr std::int64_t least_floats = 4 * 1024 * 1024;
  return tensor::volume(dst.extents) >= least_floats && dst.offset % lanes == 0 &&
         std::all_of(tensor::all_dims.begin(), tensor::all_dims.end(), [&](tensor::Dim dim) {
           return dim == tensor::Dim::c || dst.extents[dim] == 1 || dst.strides[dim] % lanes == 0;
         });
}

/// The same for a gradient of weights with `columns` items side by side: the optimizer reads it only after the
/// gradients of other layers have been computed.
inline bool writes_around_cache(std::int64_t weights, std::int64_t columns, std::int64_t lanes) {
  constexpr std::int64_t least_floats = 128 * 1024;
  return weights >= least_floats && columns % lanes == 0;
}

inline bool is_aligned(const float* memory) { return reinterpret_cast<std::uintptr_t>(memory) % 64 == 0; }

}  // namespace orthant::kernels
