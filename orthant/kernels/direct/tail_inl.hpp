// Compiled once per target: include it after hwy/foreach_target.h.
#if defined(ORTHANT_KERNELS_DIRECT_TAIL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ORTHANT_KERNELS_DIRECT_TAIL_INL_HPP
#undef ORTHANT_KERNELS_DIRECT_TAIL_INL_HPP
#else
#define ORTHANT_KERNELS_DIRECT_TAIL_INL_HPP
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::direct::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

/// The first `count` lanes of a vector in memory; the others are neither read nor written, and load as zero.
class Tail {
 public:
  explicit Tail(std::int64_t count) : count_(count), mask_(hn::FirstN(Tag(), static_cast<std::size_t>(count))) {}

  HWY_INLINE Vector load(const float* from) const {
    if constexpr (has_masks) return hn::MaskedLoad(mask_, Tag(), from);
    if (count_ == static_cast<std::int64_t>(hn::Lanes(Tag()))) return hn::LoadU(Tag(), from);
    float lanes[hn::MaxLanes(Tag())] = {};
    std::copy_n(from, count_, lanes);
    return hn::LoadU(Tag(), lanes);
  }

  HWY_INLINE void store(Vector value, float* to) const {
    if constexpr (has_masks) {
      hn::BlendedStore(value, mask_, Tag(), to);
    } else {
      float lanes[hn::MaxLanes(Tag())];
      hn::StoreU(value, Tag(), lanes);
      std::copy_n(lanes, count_, to);
    }
  }

 private:
  // On other targets Highway's masked loads and stores access whole vectors.
  static constexpr bool has_masks = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2;

  std::int64_t count_;
  hn::Mask<Tag> mask_;
};

}  // namespace orthant::kernels::direct::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
