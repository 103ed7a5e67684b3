// Compiled once per target: include it after hwy/foreach_target.h.
#if defined(ORTHANT_KERNELS_DIRECT_ASIDE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ORTHANT_KERNELS_DIRECT_ASIDE_INL_HPP
#undef ORTHANT_KERNELS_DIRECT_ASIDE_INL_HPP
#else
#define ORTHANT_KERNELS_DIRECT_ASIDE_INL_HPP
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::direct::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Sums that a register tile of P x V vectors is done with. Rounding errors grow with the length of a sum in registers,
/// and hardly with the number of sums put aside. Their memory is the caller's: GCC would keep its own in registers.
template <int P, int V>
class Aside {
  using Tag = hn::ScalableTag<float>;

 public:
  /// `memory` has room for the tile; it is only used by take() and after it.
  HWY_INLINE explicit Aside(float* memory) : memory_(memory) {}

  /// Takes sums, and zeroes them.
  HWY_INLINE void take(hn::Vec<Tag> (&sums)[P][V]) {
    add_to(sums);
    holds_ = true;
#pragma GCC unroll 32
    for (int i = 0; i < P * V; ++i) {
      hn::StoreU(sums[i / V][i % V], Tag(), at(i));
      sums[i / V][i % V] = hn::Zero(Tag());
    }
  }

  HWY_INLINE void add_to(hn::Vec<Tag> (&sums)[P][V]) const {
    if (!holds_) return;
#pragma GCC unroll 32
    for (int i = 0; i < P * V; ++i) sums[i / V][i % V] = hn::Add(sums[i / V][i % V], hn::LoadU(Tag(), at(i)));
  }

 private:
  HWY_INLINE float* at(int i) const { return memory_ + static_cast<std::size_t>(i) * hn::Lanes(Tag()); }

  float* memory_;
  bool holds_ = false;
};

}  // namespace orthant::kernels::direct::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
