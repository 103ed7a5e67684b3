#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace orthant::data::io {

/// CRC-32C (Castagnoli); `before` is the checksum of what comes before these bytes.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);
/// Of a whole file.
std::uint32_t crc32c_of_file(const std::string& path);

}  // namespace orthant::data::io
