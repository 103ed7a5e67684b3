#include "orthant/kernels/channel_sums.hpp"

#include "orthant/kernels/simd.hpp"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/channel_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::HWY_NAMESPACE {
namespace {

/// sums[i] += the items i of `pixels` rows, four rows at a time so that sums are loaded and stored less often.
void sum_rows(const float* rows, std::int64_t stride, std::int64_t pixels, std::int64_t channels, float* sums) {
  std::int64_t p = 0;
  for (; p + 4 <= pixels; p += 4) {
    const float* row = rows + p * stride;
    for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      const float* at = row + i;
      const auto low = hn::Add(hn::LoadU(d, at), hn::LoadU(d, at + stride));
      const auto high = hn::Add(hn::LoadU(d, at + 2 * stride), hn::LoadU(d, at + 3 * stride));
      hn::StoreU(hn::Add(hn::LoadU(d, sums + i), hn::Add(low, high)), d, sums + i);
    });
  }
  for (; p < pixels; ++p) {
    const float* row = rows + p * stride;
    for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, sums + i), hn::LoadU(d, row + i)), d, sums + i);
    });
  }
}

}  // namespace
}  // namespace orthant::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels {
namespace {

HWY_EXPORT(sum_rows);

constexpr std::int64_t alignment = 64;

const double* doubles_of(const void* scratch, std::int64_t thread_bytes, int thread) {
  return reinterpret_cast<const double*>(static_cast<const std::byte*>(scratch) + thread_bytes * thread);
}

double* doubles_of(void* scratch, std::int64_t thread_bytes, int thread) {
  return reinterpret_cast<double*>(static_cast<std::byte*>(scratch) + thread_bytes * thread);
}

}  // namespace

ChannelSums::ChannelSums(int kinds, std::int64_t channels, std::int64_t factor, int threads)
    : kinds_(kinds), channels_(channels), factor_(factor), width_(channels * factor), threads_(threads) {
  const std::int64_t bytes = items() * static_cast<std::int64_t>(sizeof(double) + sizeof(float));
  thread_bytes_ = (bytes + alignment - 1) / alignment * alignment;
}

void ChannelSums::clear(void* scratch, int thread) const {
  std::fill_n(doubles_of(scratch, thread_bytes_, thread), items(), 0.0);
  std::fill_n(block(scratch, thread, 0), items(), 0.0F);
}

float* ChannelSums::block(void* scratch, int thread, int kind) const {
  return reinterpret_cast<float*>(doubles_of(scratch, thread_bytes_, thread) + items()) + kind * width_;
}

void ChannelSums::flush(void* scratch, int thread) const {
  double* sums = doubles_of(scratch, thread_bytes_, thread);
  float* floats = block(scratch, thread, 0);
  for (std::int64_t i = 0; i < items(); ++i) {
    sums[i] += static_cast<double>(floats[i]);
    floats[i] = 0;
  }
}

void ChannelSums::add(void* scratch, int thread, const Lines& lines, const float* items, int index, int team) const {
  RowCount count;
  lines.visit_part(index, team, block_rows, [&](const Line& line) {
    if (count.is_full(line.pixels)) flush(scratch, thread);
    HWY_DYNAMIC_DISPATCH(sum_rows)
    (items + line.offsets[0], line.strides[0], line.pixels, line.channels, block(scratch, thread, 0));
  });
  flush(scratch, thread);
}

double ChannelSums::thread_total(const void* scratch, int thread, int kind, std::int64_t channel) const {
  double sum = 0;
  const double* sums = doubles_of(scratch, thread_bytes_, thread) + kind * width_;
  for (std::int64_t pixel = 0; pixel < factor_; ++pixel) sum += sums[pixel * channels_ + channel];
  return sum;
}

double ChannelSums::total(const void* scratch, int team, int kind, std::int64_t channel) const {
  double sum = 0;
  for (int thread = 0; thread < team; ++thread) sum += thread_total(scratch, thread, kind, channel);
  return sum;
}

}  // namespace orthant::kernels
#endif
