#include "orthant/kernels/direct_activation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/direct_activation.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/activation_inl.hpp"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::direct::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class Function>
void each(const ActivateCall& call, Function function) {
  const hn::ScalableTag<float> tag;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  for (std::int64_t p = 0; p < call.pixels; ++p) {
    float* values = call.values + p * call.step;
    for (std::int64_t c = 0; c < call.channels; c += lanes) {
      const auto mask = hn::FirstN(tag, static_cast<std::size_t>(std::min(lanes, call.channels - c)));
      hn::BlendedStore(function.forward(tag, hn::MaskedLoad(mask, tag, values + c)), mask, tag, values + c);
    }
  }
}

void activate_pixels(const ActivateCall& call) {
  kernels::HWY_NAMESPACE::with_activation(call.activation.kind, static_cast<float>(call.activation.slope),
                                          [&](auto function) { each(call, function); });
}

}  // namespace orthant::kernels::direct::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::direct {

HWY_EXPORT(activate_pixels);

void activate(const ActivateCall& call) { HWY_DYNAMIC_DISPATCH(activate_pixels)(call); }

}  // namespace orthant::kernels::direct
#endif
