#pragma once

#include "orthant/data/io/file.hpp"

#include <vector>

namespace orthant::data::arrays {

/// Reads ranges of a file, with offsets relative to `begin`, and counts the bytes. Pass it to convert_box() by
/// std::ref.
class FileFetch {
 public:
  FileFetch(const io::InputFile& file, std::int64_t begin) : file_(file), begin_(begin) {}

  std::span<const std::byte> operator()(std::int64_t first, std::int64_t bytes, std::byte* room) {
    if (room == nullptr && piece_.size() < static_cast<std::size_t>(bytes))
      piece_.resize(static_cast<std::size_t>(bytes));
    const std::span<std::byte> piece(room == nullptr ? piece_.data() : room, static_cast<std::size_t>(bytes));
    file_.read(begin_ + first, piece);
    bytes_ += bytes;
    return piece;
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  const io::InputFile& file_;
  std::int64_t begin_;
  std::int64_t bytes_ = 0;
  std::vector<std::byte> piece_;
};

}  // namespace orthant::data::arrays
