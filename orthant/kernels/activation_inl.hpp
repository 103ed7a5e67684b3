// Compiled once per target: include it after hwy/foreach_target.h.
#if defined(ORTHANT_KERNELS_ACTIVATION_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ORTHANT_KERNELS_ACTIVATION_INL_HPP
#undef ORTHANT_KERNELS_ACTIVATION_INL_HPP
#else
#define ORTHANT_KERNELS_ACTIVATION_INL_HPP
#endif

#include "orthant/model/ops.hpp"

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Each has forward(d, z), backward(d, y, g) = g * activation'(z) with y = forward(z), and through(d, z, g), the same
// from z, which is more exact where y is near its bounds. NaN stays NaN.

struct Identity {
  template <class D, class V>
  HWY_INLINE V forward(D, V z) const {
    return z;
  }
  template <class D, class V>
  HWY_INLINE V backward(D, V, V g) const {
    return g;
  }
  template <class D, class V>
  HWY_INLINE V through(D d, V z, V g) const {
    return backward(d, z, g);
  }
};

struct Relu {
  template <class D, class V>
  HWY_INLINE V forward(D d, V z) const {
    return hn::IfThenZeroElse(hn::Lt(z, hn::Zero(d)), z);
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V y, V g) const {
    return hn::IfThenZeroElse(hn::Le(y, hn::Zero(d)), g);
  }
  template <class D, class V>
  HWY_INLINE V through(D d, V z, V g) const {
    return backward(d, z, g);
  }
};

struct LeakyRelu {
  float slope;

  template <class D, class V>
  HWY_INLINE V forward(D d, V z) const {
    return hn::IfThenElse(hn::Lt(z, hn::Zero(d)), hn::Mul(z, hn::Set(d, slope)), z);
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V y, V g) const {
    return hn::IfThenElse(hn::Gt(y, hn::Zero(d)), g, hn::Mul(g, hn::Set(d, slope)));
  }
  template <class D, class V>
  HWY_INLINE V through(D d, V z, V g) const {
    return backward(d, z, g);
  }
};

/// e / (1 + e)^2 with e = exp(-|z|): the slope of the logistic function.
template <class D, class V>
HWY_INLINE V logistic_slope(D d, V z) {
  const V one = hn::Set(d, 1.0F);
  const V e = hn::Exp(d, hn::Neg(hn::Abs(z)));
  return hn::IfThenElse(hn::Eq(z, z), hn::Div(e, hn::Mul(hn::Add(one, e), hn::Add(one, e))), z);
}

struct Tanh {
  template <class D, class V>
  HWY_INLINE V forward(D d, V z) const {
    return hn::IfThenElse(hn::Eq(z, z), hn::Tanh(d, z), z);
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V y, V g) const {
    return hn::Mul(g, hn::NegMulAdd(y, y, hn::Set(d, 1.0F)));
  }
  template <class D, class V>
  HWY_INLINE V through(D d, V z, V g) const {
    return hn::Mul(hn::Mul(g, hn::Set(d, 4.0F)), logistic_slope(d, hn::Add(z, z)));
  }
};

struct Sigmoid {
  template <class D, class V>
  HWY_INLINE V forward(D d, V z) const {
    const V one = hn::Set(d, 1.0F);
    const V bounded = hn::Min(hn::Neg(z), hn::Set(d, 88.0F));  // exp must not overflow to what Exp does not define
    return hn::IfThenElse(hn::Eq(z, z), hn::Div(one, hn::Add(one, hn::Exp(d, bounded))), z);
  }
  template <class D, class V>
  HWY_INLINE V backward(D, V y, V g) const {
    return hn::Mul(g, hn::NegMulAdd(y, y, y));
  }
  template <class D, class V>
  HWY_INLINE V through(D d, V z, V g) const {
    return hn::Mul(g, logistic_slope(d, z));
  }
};

/// Calls call(activation) with the type that belongs to the kind.
template <class Call>
HWY_INLINE void with_activation(model::ActivationKind kind, float slope, Call call) {
  switch (kind) {
    case model::ActivationKind::identity: return call(Identity{});
    case model::ActivationKind::relu: return call(Relu{});
    case model::ActivationKind::leaky_relu: return call(LeakyRelu{slope});
    case model::ActivationKind::tanh: return call(Tanh{});
    case model::ActivationKind::sigmoid: return call(Sigmoid{});
  }
}

}  // namespace orthant::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
