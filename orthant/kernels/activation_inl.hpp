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
// from z, which is more exact where y is near its bounds. Where derivative_reads_src(), backward is given z, too. NaN
// stays NaN.

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

/// 0 below lo, hi above hi, z between.
template <class D, class V>
HWY_INLINE V clipped(D d, V z, float hi) {
  const V low = hn::IfThenZeroElse(hn::Lt(z, hn::Zero(d)), z);
  return hn::IfThenElse(hn::Gt(low, hn::Set(d, hi)), hn::Set(d, hi), low);
}

/// g where 0 < y < hi.
template <class D, class V>
HWY_INLINE V where_inside(D d, V y, float hi, V g) {
  return hn::IfThenZeroElse(hn::Le(y, hn::Zero(d)), hn::IfThenZeroElse(hn::Ge(y, hn::Set(d, hi)), g));
}

struct Relu6 {
  template <class D, class V>
  HWY_INLINE V forward(D d, V z) const {
    return clipped(d, z, 6.0F);
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V y, V g) const {
    return where_inside(d, y, 6.0F, g);
  }
  template <class D, class V>
  HWY_INLINE V through(D d, V z, V g) const {
    return backward(d, z, g);
  }
};

/// relu6(z + 3) / 6.
struct HardSigmoid {
  template <class D, class V>
  HWY_INLINE V forward(D d, V z) const {
    return hn::Mul(clipped(d, hn::Add(z, hn::Set(d, 3.0F)), 6.0F), hn::Set(d, 1.0F / 6));
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V y, V g) const {
    return where_inside(d, y, 1.0F, hn::Mul(g, hn::Set(d, 1.0F / 6)));
  }
  template <class D, class V>
  HWY_INLINE V through(D d, V z, V g) const {
    return where_inside(d, hn::Add(z, hn::Set(d, 3.0F)), 6.0F, hn::Mul(g, hn::Set(d, 1.0F / 6)));
  }
};

/// slope * (exp(z) - 1) below zero.
struct Elu {
  float slope;

  template <class D, class V>
  HWY_INLINE V forward(D d, V z) const {
    const V below = hn::Mul(hn::Set(d, slope), hn::Expm1(d, hn::Min(z, hn::Zero(d))));
    return hn::IfThenElse(hn::Lt(z, hn::Zero(d)), below, z);
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V y, V g) const {
    return hn::IfThenElse(hn::Gt(y, hn::Zero(d)), g, hn::Mul(g, hn::Add(y, hn::Set(d, slope))));
  }
  template <class D, class V>
  HWY_INLINE V through(D d, V z, V g) const {
    const V below = hn::Mul(hn::Set(d, slope), hn::Exp(d, hn::Min(z, hn::Zero(d))));
    return hn::IfThenElse(hn::Gt(z, hn::Zero(d)), g, hn::IfThenElse(hn::Eq(z, z), hn::Mul(g, below), z));
  }
};

/// z * sigmoid(z).
struct Silu {
  template <class D, class V>
  HWY_INLINE V forward(D d, V z) const {
    return hn::Mul(z, Sigmoid{}.forward(d, z));
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V z, V g) const {
    const V one = hn::Set(d, 1.0F);
    const V s = Sigmoid{}.forward(d, z);
    return hn::Mul(g, hn::Mul(s, hn::MulAdd(z, hn::Sub(one, s), one)));
  }
  template <class D, class V>
  HWY_INLINE V through(D d, V z, V g) const {
    return backward(d, z, g);
  }
};

/// The error function, to an ulp or two of one: z P(z^2) / Q(z^2), from 4 on as at 4.
template <class D, class V>
HWY_INLINE V erf_of(D d, V z) {
  const V x = hn::Max(hn::Min(z, hn::Set(d, 4.0F)), hn::Set(d, -4.0F));
  const V s = hn::Mul(x, x);
  V p = hn::MulAdd(hn::Set(d, -2.72614225801306e-10F), s, hn::Set(d, 2.77068142495902e-08F));
  p = hn::MulAdd(p, s, hn::Set(d, -2.10102402082508e-06F));
  p = hn::MulAdd(p, s, hn::Set(d, -5.69250639462346e-05F));
  p = hn::MulAdd(p, s, hn::Set(d, -7.34990630326855e-04F));
  p = hn::MulAdd(p, s, hn::Set(d, -2.95459980854025e-03F));
  p = hn::MulAdd(p, s, hn::Set(d, -1.60960333262415e-02F));
  V q = hn::MulAdd(hn::Set(d, -1.45660718464996e-05F), s, hn::Set(d, -2.13374055278905e-04F));
  q = hn::MulAdd(q, s, hn::Set(d, -1.68282697438203e-03F));
  q = hn::MulAdd(q, s, hn::Set(d, -7.37332916720468e-03F));
  q = hn::MulAdd(q, s, hn::Set(d, -1.42647390514189e-02F));
  return hn::IfThenElse(hn::Eq(z, z), hn::Div(hn::Mul(x, p), q), z);
}

/// z * (1 + erf(z / sqrt(2))) / 2.
struct Gelu {
  static constexpr float inverse_root_two = 0.70710678118654752F, inverse_root_two_pi = 0.39894228040143268F;

  template <class D, class V>
  static HWY_INLINE V share(D d, V z) {
    const V half = hn::Set(d, 0.5F);
    return hn::MulAdd(half, erf_of(d, hn::Mul(z, hn::Set(d, inverse_root_two))), half);
  }
  template <class D, class V>
  HWY_INLINE V forward(D d, V z) const {
    return hn::Mul(z, share(d, z));
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V z, V g) const {
    const V exponent = hn::Max(hn::Mul(hn::Mul(z, z), hn::Set(d, -0.5F)), hn::Set(d, -80.0F));
    const V bell = hn::Mul(hn::Exp(d, exponent), hn::Set(d, inverse_root_two_pi));
    return hn::Mul(g, hn::MulAdd(z, bell, share(d, z)));
  }
  template <class D, class V>
  HWY_INLINE V through(D d, V z, V g) const {
    return backward(d, z, g);
  }
};

/// z * hard_sigmoid(z).
struct HardSwish {
  template <class D, class V>
  HWY_INLINE V forward(D d, V z) const {
    return hn::Mul(z, HardSigmoid{}.forward(d, z));
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V z, V g) const {
    const V three = hn::Set(d, 3.0F);
    const V inside = hn::Mul(g, hn::MulAdd(z, hn::Set(d, 1.0F / 3), hn::Set(d, 0.5F)));
    const V upper = hn::IfThenElse(hn::Gt(z, three), g, inside);
    return hn::IfThenZeroElse(hn::Lt(z, hn::Neg(three)), upper);
  }
  template <class D, class V>
  HWY_INLINE V through(D d, V z, V g) const {
    return backward(d, z, g);
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
    case model::ActivationKind::relu6: return call(Relu6{});
    case model::ActivationKind::hard_sigmoid: return call(HardSigmoid{});
    case model::ActivationKind::elu: return call(Elu{slope});
    case model::ActivationKind::silu: return call(Silu{});
    case model::ActivationKind::gelu: return call(Gelu{});
    case model::ActivationKind::hard_swish: return call(HardSwish{});
  }
}

}  // namespace orthant::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
