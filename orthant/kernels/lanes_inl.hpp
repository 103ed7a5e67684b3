// Compiled once per target: include it after hwy/foreach_target.h.
#if defined(ORTHANT_KERNELS_LANES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ORTHANT_KERNELS_LANES_INL_HPP
#undef ORTHANT_KERNELS_LANES_INL_HPP
#else
#define ORTHANT_KERNELS_LANES_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls body(tag, i) over [0, count): whole vectors, then four lanes, then single ones.
template <class Body>
HWY_INLINE void for_lanes(std::int64_t count, Body body) {
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(whole));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) body(whole, i);
  for (; i + 4 <= count; i += 4) body(four, i);
  for (; i < count; ++i) body(one, i);
}

/// Prefetches what a loop over items in order will read about one page later: the hardware's own prefetcher stops at
/// the end of a page and is too late for loops with several streams. Prefetching beyond the end of a buffer is
/// harmless.
HWY_INLINE void prefetch_ahead(const float* item) {
  constexpr std::int64_t distance = 1024;
  __builtin_prefetch(item + distance);
}

}  // namespace orthant::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
