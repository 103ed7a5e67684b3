#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace orthant::data::io {

/// The bytes of a file, unpacked if it is gzip. Throws Error if it cannot be unpacked or unpacks to more
/// than `most_bytes`.
std::vector<std::byte> read_unpacked(const std::string& path, std::size_t most_bytes = std::size_t{8} << 30);

/// `bytes` packed as gzip.
std::string gzip(const std::string& bytes);

}  // namespace orthant::data::io
