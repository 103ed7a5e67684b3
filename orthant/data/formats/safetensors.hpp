#pragma once

#include "orthant/data/arrays/number.hpp"
#include "orthant/data/io/file.hpp"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace orthant::data::formats {

/// One tensor of a safetensors file; offsets count bytes after the header.
struct TensorEntry {
  arrays::NumberType type = arrays::NumberType::f32;
  std::vector<std::int64_t> extents;
  std::int64_t begin = 0, end = 0;
  std::optional<std::uint32_t> crc32c{};  ///< of its bytes, in files that have checksums
};

/// Named tensors on disk. The constructor reads and checks the header; tensors must cover the file without
/// holes or overlaps, as the format demands.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const std::map<std::string, TensorEntry>& tensors() const { return tensors_; }
  /// The tensor as floats; `into` must have its size. Throws Error with the position of a NaN or infinity, or if the
  /// file has checksums and that of the tensor is another.
  void read(const std::string& name, std::span<float> into) const;

 private:
  io::InputFile file_;
  std::map<std::string, TensorEntry> tensors_;
  std::int64_t data_begin_ = 0;
};

/// A float32 tensor to write. `fill` is called when its turn comes, so that only one tensor at a time is in memory.
struct TensorSource {
  std::string name;
  std::vector<std::int64_t> extents;
  std::function<void(std::span<float>)> fill;
};

/// Writes a file atomically, tensors in the given order, with their checksums in the metadata `crc32c`: one of eight
/// hexadecimal digits for each tensor, in the order of names.
void write_safetensors(const std::string& path, const std::vector<TensorSource>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace orthant::data::formats
