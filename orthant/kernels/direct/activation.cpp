#include "orthant/kernels/direct/activation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/direct/activation.cpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/activation_inl.hpp"
#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::direct::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class Function>
void each(const ActivateCall& call, Function function) {
  for (std::int64_t p = 0; p < call.pixels; ++p) {
    float* values = call.values + p * call.step;
    kernels::HWY_NAMESPACE::for_lanes(call.channels, [&](auto tag, std::int64_t c) {
      hn::StoreU(function.forward(tag, hn::LoadU(tag, values + c)), tag, values + c);
    });
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
