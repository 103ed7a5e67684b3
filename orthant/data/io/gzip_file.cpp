#include "orthant/data/io/gzip_file.hpp"

#include "orthant/base/error.hpp"
#include "orthant/data/io/file.hpp"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace orthant::data::io {
namespace {

using base::Exit;
using base::fail;

constexpr int gzip_window = 15 + 16;  // this is how zlib is asked for the gzip format
constexpr std::size_t piece_bytes = 1 << 22;
/// Deflate makes no more of a byte.
constexpr std::size_t most_expansion = 1032;

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

/// Unpacks a gzip file, which is a sequence of members, some of it at a time.
class Unpacking {
 public:
  Unpacking(std::span<const std::byte> packed, const std::string& path) : packed_(packed), path_(path) {}
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;
  ~Unpacking() {
    if (is_open_) inflateEnd(&stream_);
  }

  /// Appends what comes next until `bytes` has so many, or the file ends.
  void fill(std::vector<std::byte>& bytes, std::size_t until) {
    while (bytes.size() < until) {
      if (!is_open_) {
        if (packed_.empty()) return;
        open();
      }
      unpack_piece(bytes, std::min(until - bytes.size(), piece_bytes));
    }
  }

 private:
  void open() {
    if (!is_gzip(packed_)) fail(Exit::bad_data, "'{}' has {} bytes after its gzip data", path_, packed_.size());
    stream_ = {};
    if (inflateInit2(&stream_, gzip_window) != Z_OK) throw std::bad_alloc();
    is_open_ = true;
  }
  void unpack_piece(std::vector<std::byte>& bytes, std::size_t most) {
    const std::size_t before = bytes.size();
    const std::size_t given = std::min<std::size_t>(packed_.size(), 1U << 30U);
    bytes.resize(before + most);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed_.data()));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(bytes.data() + before);
    stream_.avail_out = static_cast<uInt>(most);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    bytes.resize(before + most - stream_.avail_out);
    packed_ = packed_.subspan(given - stream_.avail_in);
    if (status == Z_STREAM_END) {
      inflateEnd(&stream_);
      is_open_ = false;
    } else if (status != Z_OK) {
      fail(Exit::bad_data, "'{}' does not unpack: its gzip data is damaged or truncated", path_);
    }
  }

  std::span<const std::byte> packed_;
  const std::string& path_;
  z_stream stream_{};
  bool is_open_ = false;
};

}  // namespace

std::vector<std::byte> read_unpacked(const std::string& path, const Wanted& wanted) {
  const InputFile file(path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.bytes()));
  file.read(0, bytes);
  if (!is_gzip(bytes)) return bytes;
  Unpacking unpacking(bytes, path);
  std::vector<std::byte> unpacked;
  while (true) {
    const std::size_t before = unpacked.size();
    const std::size_t needed = wanted(unpacked);
    // A header that promises what cannot be is not worth the time.
    if (needed <= before || needed / most_expansion > bytes.size()) return unpacked;
    unpacking.fill(unpacked, needed);
    if (unpacked.size() < needed) return unpacked;
  }
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
