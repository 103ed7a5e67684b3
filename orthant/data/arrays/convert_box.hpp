#pragma once

#include "orthant/data/arrays/number.hpp"
#include "orthant/tensor/layout.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace orthant::data::arrays {

/// How a file stores a tensor. The layout is channels_last or channels_first of the whole tensor, in items.
struct Stored {
  NumberType type = NumberType::f32;
  bool big_endian = false;
  tensor::Layout layout;
};

/// Returns `bytes` bytes of a stored tensor from byte `first` on, as the file has them. They are valid until the next
/// call. The function may put them into `room`, if that is not null, or return memory of its own.
using Fetch = std::function<std::span<const std::byte>(std::int64_t first, std::int64_t bytes, std::byte* room)>;

/// A number that cannot be used, and its position in the tensor.
struct BadItem {
  tensor::Shape at;
  double value = 0;
};

/// Converts `box` of a stored tensor to floats in memory of layout `to`, whose offset is relative to `into`. It fetches
/// no more than the box, except that whole pixels are fetched if the box has only some channels of a channels-last
/// tensor. Returns the first number that is not finite.
std::optional<BadItem> convert_box(const Stored& from, const tensor::Box& box, const Fetch& fetch,
                                   const tensor::Layout& to, float* into);
/// The same for integers; returns the first outside [0, classes).
std::optional<BadItem> convert_labels(const Stored& from, const tensor::Box& box, const Fetch& fetch,
                                      const tensor::Layout& to, std::int32_t* into, std::int64_t classes);

/// How error messages describe an array in a file.
struct ArrayName {
  const std::string& file;
  const std::vector<std::int64_t>& extents;
};

/// Throws Error for what convert_box() or convert_labels() found.
[[noreturn]] void fail_not_finite(const ArrayName& name, const tensor::Layout& layout, const BadItem& bad);
[[noreturn]] void fail_no_class(const ArrayName& name, const tensor::Layout& layout, const BadItem& bad,
                                std::int64_t classes);

}  // namespace orthant::data::arrays
