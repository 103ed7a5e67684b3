#include "orthant/data/io/crc32c.hpp"

#include "tests/data/temporary.hpp"

namespace orthant {
namespace {

std::uint32_t sum(const std::string& text, std::uint32_t before = 0) {
  return data::io::crc32c(std::as_bytes(std::span(text)), before);
}

/// Bit by bit, by the definition.
std::uint32_t slow_sum(const std::string& text) {
  std::uint32_t crc = ~0U;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? crc >> 1U ^ 0x82F63B78U : crc >> 1U;
  }
  return ~crc;
}

TEST(Crc32c, KnowsTheNumbersOfRfc3720) {
  EXPECT_EQ(sum("123456789"), 0xE3069283U);
  EXPECT_EQ(sum(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(sum(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(sum(""), 0U);
}

TEST(Crc32c, GoesOnWhereItStopped) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 37);
  for (std::size_t cut = 0; cut < 40; ++cut) EXPECT_EQ(sum(text.substr(cut), sum(text.substr(0, cut))), slow_sum(text));
}

TEST(Crc32c, IsTheSameWithoutTheInstruction) {
  std::string text;
  for (std::size_t length = 0; length < 100; ++length, text += static_cast<char>(length * 91))
    EXPECT_EQ(data::io::crc32c_by_tables(std::as_bytes(std::span(text)), 7), sum(text, 7)) << length;
}

TEST(Crc32c, OfAFile) {
  const test::TemporaryDirectory folder;
  const std::string text(3'000'001, 'x');

  EXPECT_EQ(data::io::crc32c_of_file(folder.write("a", text)), slow_sum(text));
  EXPECT_EQ(data::io::crc32c_of_file(folder.write("b", "")), 0U);
}

}  // namespace
}  // namespace orthant
