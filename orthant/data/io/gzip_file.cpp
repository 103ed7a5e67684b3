#include "orthant/data/io/gzip_file.hpp"

#include "orthant/base/error.hpp"
#include "orthant/data/io/file.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace orthant::data::io {
namespace {

using base::Exit;
using base::fail;

constexpr int gzip_window = 15 + 16;  // this is how zlib is asked for the gzip format
constexpr std::size_t piece_bytes = 1 << 22;

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

/// Owns zlib's state.
struct Inflater {
  Inflater() { inflateInit2(&stream, gzip_window); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
  z_stream stream{};
};

/// A gzip file is a sequence of members.
std::vector<std::byte> unpack(std::span<const std::byte> packed, std::size_t most_bytes, const std::string& path) {
  std::vector<std::byte> bytes;
  while (!packed.empty()) {
    if (!is_gzip(packed)) fail(Exit::bad_data, "'{}' has {} bytes after its gzip data", path, packed.size());
    Inflater inflater;
    z_stream& stream = inflater.stream;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      const std::size_t left = packed.size() - static_cast<std::size_t>(stream.total_in);
      const std::size_t before = bytes.size();
      bytes.resize(before + piece_bytes);
      stream.avail_in = static_cast<uInt>(std::min<std::size_t>(left, 1U << 30U));
      stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + before);
      stream.avail_out = static_cast<uInt>(piece_bytes);
      status = inflate(&stream, Z_NO_FLUSH);
      bytes.resize(before + piece_bytes - stream.avail_out);
      if (bytes.size() > most_bytes)
        fail(Exit::bad_data, "'{}' unpacks to more than {} bytes; is it the right file?", path, most_bytes);
      if (status != Z_OK && status != Z_STREAM_END)
        fail(Exit::bad_data, "'{}' does not unpack: its gzip data is damaged or truncated", path);
    }
    packed = packed.subspan(static_cast<std::size_t>(stream.total_in));
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> read_unpacked(const std::string& path, std::size_t most_bytes) {
  const InputFile file(path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.bytes()));
  file.read(0, bytes);
  return is_gzip(bytes) ? unpack(bytes, most_bytes, path) : bytes;
}

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, gzip_window, 9, Z_DEFAULT_STRATEGY);
  std::string packed(static_cast<std::size_t>(deflateBound(&stream, static_cast<uLong>(bytes.size()))), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  std::size_t left_in = bytes.size();
  std::size_t left_out = packed.size();
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    const std::size_t in = std::min<std::size_t>(left_in, 1U << 30U);
    const std::size_t out = std::min<std::size_t>(left_out, 1U << 30U);
    stream.avail_in = static_cast<uInt>(in);
    stream.avail_out = static_cast<uInt>(out);
    status = deflate(&stream, in == left_in ? Z_FINISH : Z_NO_FLUSH);
    left_in -= in - stream.avail_in;
    left_out -= out - stream.avail_out;
    if (status != Z_OK && status != Z_STREAM_END) break;
  }
  deflateEnd(&stream);
  if (status != Z_STREAM_END) fail(Exit::internal, "gzip failed ({}); please report this", status);
  packed.resize(packed.size() - left_out);
  return packed;
}

}  // namespace orthant::data::io
