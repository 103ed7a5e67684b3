#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace orthant::data::io {

/// How many bytes a format wants next to those there are; as many as there are once it has enough.
using Wanted = std::function<std::size_t(std::span<const std::byte> so_far)>;

/// The bytes of a file, unpacked if it is gzip: no more of it than `wanted` asks for again and again, from the first
/// bytes on, and no more than gzip can make of the file. Throws Error if it cannot be unpacked.
std::vector<std::byte> read_unpacked(const std::string& path, const Wanted& wanted);

/// `bytes` packed as gzip.
std::string gzip(const std::string& bytes);

}  // namespace orthant::data::io
