#pragma once

namespace orthant::kernels {

/// What `threads` threads reach in a loop of nothing but independent float32 multiply-adds, in GFLOP/s.
/// Takes about a quarter of a second.
double fma_peak_gflops(int threads);

}  // namespace orthant::kernels
