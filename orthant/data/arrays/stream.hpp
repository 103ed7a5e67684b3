#pragma once

#include "orthant/data/arrays/number.hpp"

#include <array>

namespace orthant::data::arrays {

/// convert() with stride 1 for results that are larger than the caches. It uses non-temporal stores, which are more
/// than twice as fast, because memory is not read before it is written.
void convert_past_caches(NumberType type, std::span<const std::byte> from, float* to);

/// Interleaves four channels: to[4 * i + c] = channels[c][i], with non-temporal stores if `past_caches`.
void interleave(const std::array<const float*, 4>& channels, std::int64_t count, float* to, bool past_caches);
/// The same for channels of 16-bit integers, which are converted to floats.
void interleave_words(const std::array<const std::byte*, 4>& channels, bool is_signed, std::int64_t count, float* to,
                      bool past_caches);

}  // namespace orthant::data::arrays
