#pragma once

#include "orthant/data/arrays/number.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/tensor/layout.hpp"

#include <span>
#include <string>
#include <vector>

namespace orthant::data::formats {

/// What the header of an npy file says.
struct NpyHeader {
  arrays::NumberType type = arrays::NumberType::f32;
  std::vector<std::int64_t> extents;
  bool fortran_order = false;
};

/// Reads the Python literal of an npy header; `path` names it in messages.
NpyHeader parse_npy_header(const std::string& text, const std::string& path);

/// An array on disk, C order. The constructor throws Error if the header does not match the size of the file; items are
/// read only on request.
class NpyFile {
 public:
  explicit NpyFile(const std::string& path);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const std::vector<std::int64_t>& extents() const { return header_.extents; }
  [[nodiscard]] std::int64_t items() const { return items_; }

  [[nodiscard]] arrays::NumberType type() const { return header_.type; }

  /// Reads `box` of the file's items, which have this layout, dense and channels-last. Returns the number of bytes read
  /// from the file. Throws Error with the position of a NaN or infinity.
  // NOLINTNEXTLINE(modernize-use-nodiscard): few count
  std::int64_t read(const tensor::Layout& layout, const tensor::Box& box, std::span<float> into) const;
  /// Reads class indices; throws Error with the position of one outside [0, classes).
  // NOLINTNEXTLINE(modernize-use-nodiscard): few count
  std::int64_t read_labels(const tensor::Layout& layout, const tensor::Box& box, std::int64_t classes,
                           std::span<std::int32_t> into) const;

 private:
  io::InputFile file_;
  NpyHeader header_;
  std::int64_t data_begin_ = 0;
  std::int64_t items_ = 0;
};

/// Writes float32 in C order, atomically.
void write_npy(const std::string& path, const std::vector<std::int64_t>& extents, std::span<const float> items);

/// "2x4x8x8x8"; "()" for a single number.
std::string extents_text(const std::vector<std::int64_t>& extents);

}  // namespace orthant::data::formats
