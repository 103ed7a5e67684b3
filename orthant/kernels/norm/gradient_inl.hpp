// Compiled once per target: include it after hwy/foreach_target.h.
#if defined(ORTHANT_KERNELS_NORM_GRADIENT_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ORTHANT_KERNELS_NORM_GRADIENT_INL_HPP
#undef ORTHANT_KERNELS_NORM_GRADIENT_INL_HPP
#else
#define ORTHANT_KERNELS_NORM_GRADIENT_INL_HPP
#endif

#include "orthant/kernels/activation_inl.hpp"
#include "orthant/kernels/lanes_inl.hpp"
#include "orthant/kernels/norm/norm.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::norm::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace hn = hwy::HWY_NAMESPACE;

/// dz and x - mean of the items i of row p.
template <class A>
struct Gradient {
  A activation;
  NormGradient args;  // a copy that no store can change stays in registers

  template <class D>
  HWY_INLINE hn::Vec<D> centred(D d, std::int64_t p, std::int64_t i) const {
    prefetch_ahead(args.x + p * args.x_stride + i);
    return hn::Sub(hn::LoadU(d, args.x + p * args.x_stride + i), hn::LoadU(d, args.mean + i));
  }

  template <class D>
  HWY_INLINE hn::Vec<D> dz(D d, hn::Vec<D> centred_x, std::int64_t p, std::int64_t i) const {
    prefetch_ahead(args.diff_y + p * args.diff_y_stride + i);
    auto g = hn::LoadU(d, args.diff_y + p * args.diff_y_stride + i);
    if (args.diff_y2) g = hn::Add(g, hn::LoadU(d, args.diff_y2 + p * args.diff_y2_stride + i));
    if (args.y) {
      prefetch_ahead(args.y + p * args.y_stride + i);
      return activation.backward(d, hn::LoadU(d, args.y + p * args.y_stride + i), g);
    }
    // z exactly as the forward pass had it.
    return activation.through(d, hn::MulAdd(centred_x, hn::LoadU(d, args.scale + i), hn::LoadU(d, args.beta + i)), g);
  }
};

}  // namespace orthant::kernels::norm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
