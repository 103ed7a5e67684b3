#include "orthant/data/io/crc32c.hpp"

#include "orthant/data/io/file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace orthant::data::io {
namespace {

using Table = std::array<std::array<std::uint32_t, 256>, 8>;

/// tables[k][b] is the checksum of byte b followed by k zeros, so that eight bytes are looked up at once.
constexpr Table make_tables() {
  Table tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 1U) != 0 ? sum >> 1U ^ 0x82F63B78U : sum >> 1U;
    tables[0][byte] = sum;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8U ^ tables[0][before & 255U];
    }
  }
  return tables;
}

constexpr Table tables = make_tables();

#ifdef __x86_64__
/// Every x86-64 processor of the last fifteen years has an instruction for this very checksum.
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> bytes, std::uint32_t sum) {
  std::uint64_t wide = sum;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  sum = static_cast<std::uint32_t>(wide);
  for (const std::byte byte : bytes) sum = __builtin_ia32_crc32qi(sum, static_cast<unsigned char>(byte));
  return sum;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2") != 0) return ~by_instruction(bytes, ~before);
#endif
  return crc32c_by_tables(bytes, before);
}

std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t sum = ~before;
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    word ^= sum;
    sum = 0;
    for (std::size_t k = 0; k < 8; ++k) sum ^= tables[7 - k][word >> 8 * k & 255U];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes) sum = sum >> 8U ^ tables[0][(sum ^ static_cast<std::uint32_t>(byte)) & 255U];
  return ~sum;
}

std::uint32_t crc32c_of_file(const std::string& path) {
  const InputFile file(path);
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::int64_t>(file.bytes(), 1 << 20)));
  std::uint32_t sum = 0;
  for (std::int64_t at = 0; at < file.bytes();) {
    const auto count = std::min<std::int64_t>(static_cast<std::int64_t>(piece.size()), file.bytes() - at);
    const std::span<std::byte> part(piece.data(), static_cast<std::size_t>(count));
    file.read(at, part);
    sum = crc32c(part, sum);
    at += count;
  }
  return sum;
}

}  // namespace orthant::data::io
