#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/simd.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::HWY_NAMESPACE {

const char* target_name() {
  if (HWY_TARGET == HWY_AVX3) return "avx3";
  if (HWY_TARGET == HWY_AVX2) return "avx2";
  return HWY_TARGET == HWY_SSE4 ? "sse4" : "scalar";
}

}  // namespace orthant::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels {

HWY_EXPORT(target_name);

// Asked of the dispatch itself: Highway 1.0's SupportedTargets() makes it forget what DisableTargets() has set.
std::string simd_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace orthant::kernels
#endif
