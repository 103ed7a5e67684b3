#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace orthant::data::io {

/// The CRC-32C (Castagnoli) of bytes; `before` is the checksum of the bytes that precede them.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);
/// The same without the processor's instruction for it, for processors that have none.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before = 0);
/// The checksum of a whole file.
std::uint32_t crc32c_of_file(const std::string& path);

}  // namespace orthant::data::io
