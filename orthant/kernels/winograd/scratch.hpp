#pragma once

#include <cstdint>
#include <vector>

namespace orthant::kernels::winograd {

/// Floats between points, so that they do not fall into one cache set.
inline constexpr std::int64_t skew = 16;

/// Lays out scratch memory, counted in floats; every piece begins at a cache line.
class Scratch {
 public:
  /// Offset of a piece that all threads share.
  std::int64_t shared(std::int64_t floats) { return take(floats); }

  /// A piece for each of `threads`; of_thread() finds them.
  std::int64_t per_thread(std::int64_t floats, int threads) {
    stride_.push_back({floats_, padded(floats)});
    return take(padded(floats) * threads);
  }

  float* of_thread(float* memory, std::int64_t offset, int thread) const {
    for (const Stride& stride : stride_) {
      if (stride.offset == offset) return memory + offset + thread * stride.floats;
    }
    return nullptr;
  }

  [[nodiscard]] std::int64_t bytes() const { return floats_ * static_cast<std::int64_t>(sizeof(float)); }

 private:
  struct Stride {
    std::int64_t offset, floats;
  };

  static std::int64_t padded(std::int64_t floats) { return (floats + 15) / 16 * 16 + 16; }

  std::int64_t take(std::int64_t floats) {
    const std::int64_t offset = floats_;
    floats_ += padded(floats);
    return offset;
  }

  std::int64_t floats_ = 0;
  std::vector<Stride> stride_;
};

}  // namespace orthant::kernels::winograd
