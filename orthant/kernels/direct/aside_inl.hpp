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

/// Partial sums of a register tile of P x V vectors. The rounding error of a result grows with the length of each
/// partial sum, and hardly with their number. The caller provides the memory, because GCC would keep a local array in
/// registers.
template <int P, int V>
class Aside {
  using Tag = hn::ScalableTag<float>;

 public:
  /// `memory` has room for the tile. It is not read before the first call of take().
  HWY_INLINE explicit Aside(float* memory) : memory_(memory) {}

  /// Adds `sums` to what is stored here, and sets them to zero.
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
