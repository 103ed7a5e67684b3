#include "orthant/data/arrays/stream.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace orthant {
namespace {

using data::arrays::NumberType;

TEST(Stream, ConvertsAsConvertDoes) {
  std::vector<std::byte> bytes(2 * 300);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 73 + i / 7);
  for (const NumberType type : {NumberType::i16, NumberType::u16, NumberType::u8, NumberType::f32}) {
    for (std::size_t items = 0; items < 40; ++items) {
      for (std::size_t offset = 0; offset < 5; ++offset) {
        const auto size = static_cast<std::size_t>(data::arrays::bytes_of(type));
        const auto from = std::span<const std::byte>(bytes).subspan(offset, items * size);
        std::vector<float> expected(items + 1);
        std::vector<float> streamed(items + 8, -1.5F);
        data::arrays::convert(type, from, expected.data(), 1);
        data::arrays::convert_past_caches(type, from, streamed.data() + offset);

        for (std::size_t i = 0; i < offset; ++i) EXPECT_EQ(streamed[i], -1.5F);
        for (std::size_t i = offset + items; i < streamed.size(); ++i) EXPECT_EQ(streamed[i], -1.5F);
        EXPECT_EQ(std::memcmp(streamed.data() + offset, expected.data(), items * 4), 0);
      }
    }
  }
}

TEST(Stream, InterleavesFourChannels) {
  std::vector<float> lanes(4 * 64);
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = static_cast<float>(i);
  for (const bool past_caches : {false, true}) {
    for (std::int64_t count = 0; count < 23; ++count) {
      for (std::size_t offset = 0; offset < 5; ++offset) {
        std::vector<float> into(4 * 23 + 8, -1);
        data::arrays::interleave({lanes.data() + offset, lanes.data() + 64, lanes.data() + 128, lanes.data() + 192},
                                 count, into.data() + offset, past_caches);

        for (std::int64_t i = 0; i < count; ++i) {
          for (std::int64_t c = 0; c < 4; ++c) {
            const auto at = offset + static_cast<std::size_t>(4 * i + c);
            EXPECT_EQ(into[at], static_cast<float>(64 * c + i + (c == 0 ? static_cast<std::int64_t>(offset) : 0)));
          }
        }
        EXPECT_EQ(into[offset + static_cast<std::size_t>(4 * count)], -1);
      }
    }
  }
}

TEST(Stream, InterleavesFourChannelsOfWords) {
  std::vector<std::byte> bytes(4 * 64 * 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 73 + i / 7);
  const std::array<const std::byte*, 4> channels{bytes.data() + 1, bytes.data() + 128, bytes.data() + 258,
                                                 bytes.data() + 384};
  for (const bool is_signed : {false, true}) {
    for (const bool past_caches : {false, true}) {
      for (std::int64_t count = 0; count < 37; ++count) {
        for (std::size_t offset = 0; offset < 5; ++offset) {
          std::vector<float> into(4 * 37 + 8, -1.5F);
          data::arrays::interleave_words(channels, is_signed, count, into.data() + offset, past_caches);

          for (std::int64_t i = 0; i < count; ++i) {
            for (std::size_t c = 0; c < 4; ++c) {
              std::uint16_t word = 0;
              std::memcpy(&word, channels.at(c) + 2 * i, 2);
              const int value = is_signed ? static_cast<std::int16_t>(word) : word;
              EXPECT_EQ(into[offset + static_cast<std::size_t>(4 * i) + c], static_cast<float>(value));
            }
          }
          EXPECT_EQ(into[offset + static_cast<std::size_t>(4 * count)], -1.5F);
        }
      }
    }
  }
}

}  // namespace
}  // namespace orthant
