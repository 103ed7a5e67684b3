#pragma once

// Included before <hwy/foreach_target.h> by every file with SIMD code: AVX-512 (AVX3), AVX2, SSE4 and plain
// scalar code (one lane; any x86-64) are compiled, and the best one is taken at run time.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3)

#include <hwy/detect_targets.h>
#include <hwy/targets.h>

#include <string>

namespace orthant::kernels {

/// "avx3", "avx2", "sse4" or "scalar": what dynamic dispatch runs on this machine.
std::string simd_target();

}  // namespace orthant::kernels
