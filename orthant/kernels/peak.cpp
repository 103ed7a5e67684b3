#include "orthant/kernels/peak.hpp"

#include "orthant/kernels/instruction_set.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#include <chrono>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int chains = 12;  // independent multiply-adds: enough to fill two pipes of latency 4 to 5

/// Runs `rounds` rounds of one multiply-add per chain. Returns the flops; `sink` keeps the compiler from leaving the
/// work out.
double multiply_add(std::int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999F);
  const auto term = hn::Set(d, 0.001F);
  hn::Vec<hn::ScalableTag<float>> sums[chains];
  // Chains that start with equal values would stay equal, and the compiler would compute only one of them.
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) sums[i] = hn::Set(d, static_cast<float>(1 + i));
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sums[i] = hn::MulAdd(sums[i], factor, term);
  }
#pragma GCC unroll 12
  for (int i = 1; i < chains; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  *sink = hn::GetLane(sums[0]);
  return 2.0 * chains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

}  // namespace
}  // namespace orthant::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels {
namespace {

HWY_EXPORT(multiply_add);

/// Seconds and flops of all threads together.
struct Sample {
  double seconds = 0;
  double flops = 0;
};

Sample run_once(int threads, std::int64_t rounds) {
  using Clock = std::chrono::steady_clock;
  double flops = 0;
  const Clock::time_point start = Clock::now();
  run_team(threads, [&](int thread, int team) {
    volatile float kept = 0;
    float sink = 0;
    const double done = HWY_DYNAMIC_DISPATCH(multiply_add)(rounds, &sink);
    kept = sink;
    static_cast<void>(kept);
    if (thread == 0) flops = done * team;
  });
  return {std::chrono::duration<double>(Clock::now() - start).count(), flops};
}

/// Other programs on the machine can only make a run slower.
Sample fastest(int threads, std::int64_t rounds, int runs) {
  Sample best = run_once(threads, rounds);
  for (int i = 1; i < runs; ++i) {
    const Sample sample = run_once(threads, rounds);
    if (sample.seconds < best.seconds) best = sample;
  }
  return best;
}

}  // namespace

double fma_peak_gflops(int threads) {
  limit_instructions();
  constexpr double wanted_seconds = 0.004;
  std::int64_t rounds = 100'000;
  while (fastest(threads, rounds, 3).seconds < wanted_seconds) rounds *= 2;
  const Sample best = fastest(threads, rounds, 50);
  return best.flops / best.seconds * 1e-9;
}

}  // namespace orthant::kernels
#endif
