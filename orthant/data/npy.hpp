#pragma once

#include "orthant/data/file.hpp"
#include "orthant/data/number.hpp"
#include "orthant/tensor/shape.hpp"

#include <span>
#include <string>
#include <vector>

namespace orthant::data {

/// What the header of an npy file says.
struct NpyHeader {
  NumberType type = NumberType::f32;
  std::vector<std::int64_t> extents;
  bool fortran_order = false;
};

/// Reads the Python literal of an npy header; `path` names it in messages.
NpyHeader parse_npy_header(const std::string& text, const std::string& path);

/// An array on disk, C order. The constructor refuses whatever does not fit the file's size; nothing is read before
/// it is asked for. Positions count items in the file's order.
class NpyFile {
 public:
  explicit NpyFile(const std::string& path);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const std::vector<std::int64_t>& extents() const { return header_.extents; }
  [[nodiscard]] std::int64_t items() const { return items_; }

  /// Items from `first` on, in the file's order. Throws Error naming the place of a NaN or infinity.
  void read(std::int64_t first, std::span<float> into) const;
  /// The same for a block of NCDHW items that becomes NDHWC in memory, a piece at a time.
  void read_channels_last(std::int64_t first, const tensor::Shape& block, std::span<float> into) const;
  /// Class indices; throws Error naming the place of one outside [0, classes).
  void read_labels(std::int64_t first, std::int64_t classes, std::span<std::int32_t> into) const;

 private:
  void read_strided(std::int64_t first, std::int64_t count, float* into, std::int64_t stride) const;
  [[nodiscard]] std::string place(std::int64_t item) const;

  InputFile file_;
  NpyHeader header_;
  std::int64_t data_begin_ = 0;
  std::int64_t items_ = 0;
};

/// Writes float32 in C order, atomically.
void write_npy(const std::string& path, const std::vector<std::int64_t>& extents, std::span<const float> items);

/// "2x4x8x8x8"; "()" for a single number.
std::string extents_text(const std::vector<std::int64_t>& extents);

}  // namespace orthant::data
