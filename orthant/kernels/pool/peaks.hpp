#pragma once

#include <cstdint>

namespace orthant::kernels::pool {

/// The largest item of every channel so far, and the number of its pixel.
struct Peaks {
  float* items = nullptr;
  std::int32_t* pixels = nullptr;
};

/// Looks at pixels [first, first + count) side by side, `stride` items apart, in this order. The first of equal items
/// wins, NaN wins over all.
void find_peaks(const Peaks& peaks, const float* src, std::int64_t stride, std::int32_t first, std::int64_t count,
                std::int64_t channels);

}  // namespace orthant::kernels::pool
