#include "orthant/data/arrays/stream.hpp"

#include <emmintrin.h>  // SSE2, which every x86-64 has

#include <algorithm>

namespace orthant::data::arrays {
namespace {

constexpr std::uintptr_t vector_bytes = 16;

bool is_aligned(const float* at) { return reinterpret_cast<std::uintptr_t>(at) % vector_bytes == 0; }

/// Widens eight 16-bit integers to 32 bits.
struct Pair {
  __m128i low, high;
};

Pair widen(__m128i words, bool is_signed) {
  if (!is_signed)
    return {_mm_unpacklo_epi16(words, _mm_setzero_si128()), _mm_unpackhi_epi16(words, _mm_setzero_si128())};
  return {_mm_srai_epi32(_mm_unpacklo_epi16(words, words), 16), _mm_srai_epi32(_mm_unpackhi_epi16(words, words), 16)};
}

/// `to` is aligned; returns how many numbers were converted.
std::int64_t stream_words(const std::byte* from, std::int64_t count, float* to, bool is_signed) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const Pair pair = widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i)), is_signed);
    _mm_stream_ps(to + i, _mm_cvtepi32_ps(pair.low));
    _mm_stream_ps(to + i + 4, _mm_cvtepi32_ps(pair.high));
  }
  return i;
}

}  // namespace

void convert_past_caches(NumberType type, std::span<const std::byte> from, float* to) {
  const std::int64_t size = bytes_of(type);
  if (type != NumberType::i16 && type != NumberType::u16) return convert(type, from, to, 1);
  const std::int64_t count = static_cast<std::int64_t>(from.size()) / size;
  std::int64_t head = 0;
  while (head < count && !is_aligned(to + head)) ++head;
  convert(type, from.first(static_cast<std::size_t>(head * size)), to, 1);
  const std::int64_t done =
      head + stream_words(from.data() + head * size, count - head, to + head, type == NumberType::i16);
  _mm_sfence();
  convert(type, from.subspan(static_cast<std::size_t>(done * size)), to + done, 1);
}

void interleave_words(const std::array<const std::byte*, 4>& channels, bool is_signed, std::int64_t count, float* to,
                      bool past_caches) {
  const bool streams = past_caches && is_aligned(to);
  const auto put = [&](float* at, __m128i two_pixels) {
    const Pair pair = widen(two_pixels, is_signed);
    streams ? _mm_stream_ps(at, _mm_cvtepi32_ps(pair.low)) : _mm_storeu_ps(at, _mm_cvtepi32_ps(pair.low));
    streams ? _mm_stream_ps(at + 4, _mm_cvtepi32_ps(pair.high)) : _mm_storeu_ps(at + 4, _mm_cvtepi32_ps(pair.high));
  };
  const auto load = [&](std::size_t c, std::int64_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(channels.at(c) + 2 * i));
  };
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i a = load(0, i), b = load(1, i), c = load(2, i), d = load(3, i);
    const __m128i ab_low = _mm_unpacklo_epi16(a, b), cd_low = _mm_unpacklo_epi16(c, d);
    const __m128i ab_high = _mm_unpackhi_epi16(a, b), cd_high = _mm_unpackhi_epi16(c, d);
    put(to + 4 * i, _mm_unpacklo_epi32(ab_low, cd_low));
    put(to + 4 * i + 8, _mm_unpackhi_epi32(ab_low, cd_low));
    put(to + 4 * i + 16, _mm_unpacklo_epi32(ab_high, cd_high));
    put(to + 4 * i + 24, _mm_unpackhi_epi32(ab_high, cd_high));
  }
  if (streams) _mm_sfence();
  const NumberType type = is_signed ? NumberType::i16 : NumberType::u16;
  for (std::size_t c = 0; c < 4; ++c)
    convert(type, {channels.at(c) + 2 * i, static_cast<std::size_t>(2 * (count - i))}, to + 4 * i + c, 4);
}

void interleave(const std::array<const float*, 4>& channels, std::int64_t count, float* to, bool past_caches) {
  const bool streams = past_caches && is_aligned(to);
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    __m128 a = _mm_loadu_ps(channels[0] + i);
    __m128 b = _mm_loadu_ps(channels[1] + i);
    __m128 c = _mm_loadu_ps(channels[2] + i);
    __m128 d = _mm_loadu_ps(channels[3] + i);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    float* at = to + 4 * i;
    for (const __m128 pixel : {a, b, c, d}) {
      streams ? _mm_stream_ps(at, pixel) : _mm_storeu_ps(at, pixel);
      at += 4;
    }
  }
  if (streams) _mm_sfence();
  for (; i < count; ++i) {
    for (std::size_t c = 0; c < 4; ++c) to[4 * i + static_cast<std::int64_t>(c)] = channels.at(c)[i];
  }
}

}  // namespace orthant::data::arrays
