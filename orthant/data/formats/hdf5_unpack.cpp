#include "orthant/data/formats/hdf5_unpack.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace orthant::data::formats {
namespace {

constexpr std::size_t checksum_bytes = 4;

std::size_t bytes_of_chunk(const Hdf5Array& array) {
  std::int64_t bytes = bytes_of(array.type);
  for (const std::int64_t extent : array.chunk) bytes *= extent;
  return static_cast<std::size_t>(bytes);
}

bool is_skipped(const Hdf5Chunk& chunk, std::size_t filter) { return (chunk.skipped_filters >> filter & 1U) != 0; }

}  // namespace

Hdf5Unpacker::Hdf5Unpacker(const io::InputFile& file, const Hdf5Array& array, const std::string& name)
    : file_(file), array_(array), name_(name), chunk_bytes_(bytes_of_chunk(array)) {}

void Hdf5Unpacker::refuse(const Hdf5Chunk& chunk, const char* why) const {
  base::fail(base::Exit::bad_data, "'{}' is damaged: the chunk at byte {} {}", name_, chunk.offset, why);
}

std::span<const std::byte> Hdf5Unpacker::unpack(const Hdf5Chunk& chunk) {
  bytes_.resize(static_cast<std::size_t>(chunk.bytes));
  file_.read(chunk.offset, bytes_);
  // A checksum that was appended before packing is packed as well.
  std::size_t packed_bytes = chunk_bytes_;
  for (std::size_t i = 0; i < array_.filters.size() && array_.filters[i] != Hdf5Filter::deflate; ++i) {
    if (array_.filters[i] == Hdf5Filter::fletcher32 && !is_skipped(chunk, i)) packed_bytes += checksum_bytes;
  }
  for (std::size_t i = array_.filters.size(); i-- > 0;) {
    if (is_skipped(chunk, i)) continue;
    switch (array_.filters[i]) {
      case Hdf5Filter::deflate: inflate(packed_bytes, chunk); break;
      case Hdf5Filter::shuffle: unshuffle(); break;
      case Hdf5Filter::fletcher32: check_sum(chunk); break;
    }
  }
  if (bytes_.size() != chunk_bytes_) refuse(chunk, "does not have the size of the other chunks");
  return bytes_;
}

void Hdf5Unpacker::inflate(std::size_t most_bytes, const Hdf5Chunk& chunk) {
  // Deflate makes at most 1,032 bytes of one.
  if (most_bytes / 1032 > bytes_.size()) refuse(chunk, "does not unpack");
  scratch_.resize(most_bytes);
  uLongf got = scratch_.size();
  const int status = ::uncompress(reinterpret_cast<Bytef*>(scratch_.data()), &got,
                                  reinterpret_cast<const Bytef*>(bytes_.data()), static_cast<uLong>(bytes_.size()));
  if (status != Z_OK || got != most_bytes) refuse(chunk, "does not unpack");
  bytes_.swap(scratch_);
}

/// The filter stores the first bytes of all items, then the second bytes, and so on; bytes after the last whole item
/// are left as they are.
void Hdf5Unpacker::unshuffle() {
  const auto size = static_cast<std::size_t>(bytes_of(array_.type));
  const std::size_t items = bytes_.size() / size;
  if (size == 1 || items == 0) return;
  scratch_.resize(bytes_.size());
  for (std::size_t part = 0; part < size; ++part) {
    const std::byte* from = bytes_.data() + part * items;
    std::byte* to = scratch_.data() + part;
    for (std::size_t i = 0; i < items; ++i) to[i * size] = from[i];
  }
  std::copy(bytes_.begin() + static_cast<std::ptrdiff_t>(items * size), bytes_.end(),
            scratch_.begin() + static_cast<std::ptrdiff_t>(items * size));
  bytes_.swap(scratch_);
}

void Hdf5Unpacker::check_sum(const Hdf5Chunk& chunk) {
  if (bytes_.size() < checksum_bytes) refuse(chunk, "has no checksum");
  std::uint32_t stored = 0;
  std::memcpy(&stored, bytes_.data() + bytes_.size() - checksum_bytes, checksum_bytes);
  bytes_.resize(bytes_.size() - checksum_bytes);
  if (fletcher32(bytes_) != stored) refuse(chunk, "has a wrong checksum");
}

std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  const auto fold = [](std::uint32_t sum) { return (sum & 0xFFFFU) + (sum >> 16U); };
  constexpr std::size_t pairs_before_overflow = 360;
  std::uint32_t sum = 0;
  std::uint32_t sum_of_sums = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.size(), at + 2 * pairs_before_overflow);
    for (; at < end; at += 2) {
      const auto high = static_cast<std::uint32_t>(bytes[at]) << 8U;
      sum += high | (at + 1 < end ? static_cast<std::uint32_t>(bytes[at + 1]) : 0);
      sum_of_sums += sum;
    }
    sum = fold(sum);
    sum_of_sums = fold(sum_of_sums);
  }
  return fold(sum_of_sums) << 16U | fold(sum);
}

}  // namespace orthant::data::formats
