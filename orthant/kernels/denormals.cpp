#include "orthant/kernels/denormals.hpp"

#include "orthant/kernels/team.hpp"

#include <hwy/highway.h>

#if HWY_ARCH_X86
#include <immintrin.h>
#endif

namespace orthant::kernels {
namespace {

void flush(int threads, bool on) {
#if HWY_ARCH_X86
  run_team(threads, [&](int, int) {
    _MM_SET_FLUSH_ZERO_MODE(on ? _MM_FLUSH_ZERO_ON : _MM_FLUSH_ZERO_OFF);
    constexpr unsigned operands = 0x40;  // "denormals are zero", bit 6 of the control register
    _mm_setcsr(on ? _mm_getcsr() | operands : _mm_getcsr() & ~operands);
  });
#else
  (void)threads;
  (void)on;
#endif
}

}  // namespace

FlushToZero::FlushToZero(int threads) : threads_(threads) { flush(threads_, true); }
FlushToZero::~FlushToZero() { flush(threads_, false); }

}  // namespace orthant::kernels
