#pragma once

// Included before <hwy/foreach_target.h> by every file with SIMD code: AVX-512 (AVX3), AVX2 and the x86-64
// baseline (EMU128, which the compiler turns into SSE2) are compiled, and the best one is taken at run time.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)

#include <hwy/detect_targets.h>
#include <hwy/targets.h>

#include <string>

namespace orthant::kernels {

/// "avx3", "avx2" or "baseline": what dynamic dispatch runs on this machine.
inline std::string simd_target() {
  const auto usable = hwy::SupportedTargets() & HWY_TARGETS;
  if (usable & HWY_AVX3) return "avx3";
  return (usable & HWY_AVX2) ? "avx2" : "baseline";
}

}  // namespace orthant::kernels
