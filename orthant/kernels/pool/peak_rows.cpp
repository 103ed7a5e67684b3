#include "orthant/kernels/pool/peaks.hpp"
#include "orthant/kernels/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/pool/peak_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::pool::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

void peak_row(const Peaks& peaks, const float* src, std::int64_t stride, std::int32_t first, std::int64_t count,
              std::int64_t channels) {
  for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> di;
    auto largest = hn::LoadU(d, peaks.items + i);
    auto pixel = hn::LoadU(di, peaks.pixels + i);
    for (std::int64_t p = 0; p < count; ++p) {
      prefetch_ahead(src + p * stride + i);
      const auto item = hn::LoadU(d, src + p * stride + i);
      const auto wins = hn::Or(hn::Gt(item, largest), hn::IsNaN(item));
      largest = hn::IfThenElse(wins, item, largest);
      pixel = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, first + static_cast<std::int32_t>(p)), pixel);
    }
    hn::StoreU(largest, d, peaks.items + i);
    hn::StoreU(pixel, di, peaks.pixels + i);
  });
}

}  // namespace
}  // namespace orthant::kernels::pool::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::pool {

HWY_EXPORT(peak_row);

void find_peaks(const Peaks& peaks, const float* src, std::int64_t stride, std::int32_t first, std::int64_t count,
                std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(peak_row)(peaks, src, stride, first, count, channels);
}

}  // namespace orthant::kernels::pool
#endif
