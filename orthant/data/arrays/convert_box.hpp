#pragma once

#include "orthant/data/arrays/number.hpp"
#include "orthant/tensor/layout.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace orthant::data::arrays {

/// How a file stores a tensor. The layout is channels_last or channels_first of the whole, in items.
struct Stored {
  NumberType type = NumberType::f32;
  bool big_endian = false;
  tensor::Layout layout;
};

/// Bytes of a stored tensor from `first` on, as the file has them; they stay until the next call. They may be put into
/// `room`, if that is not null, or be anywhere else.
using Fetch = std::function<std::span<const std::byte>(std::int64_t first, std::int64_t bytes, std::byte* room)>;

/// A number that cannot be used, and where in the tensor.
struct BadItem {
  tensor::Shape at;
  double value = 0;
};

/// Converts `box` of a stored tensor into memory laid out as `to` (offset from `into`), fetching no more than the box;
/// where a box has some channels of a channels-last tensor, its pixels are fetched whole. Returns the first number that
/// is not finite.
std::optional<BadItem> convert_box(const Stored& from, const tensor::Box& box, const Fetch& fetch,
                                   const tensor::Layout& to, float* into);
/// The same for integers; returns the first outside [0, classes).
std::optional<BadItem> convert_labels(const Stored& from, const tensor::Box& box, const Fetch& fetch,
                                      const tensor::Layout& to, std::int32_t* into, std::int64_t classes);

/// What messages say of an array in a file.
struct ArrayName {
  const std::string& file;
  const std::vector<std::int64_t>& extents;
};

/// Throws Error for what convert_box() or convert_labels() found.
[[noreturn]] void fail_not_finite(const ArrayName& name, const tensor::Layout& layout, const BadItem& bad);
[[noreturn]] void fail_no_class(const ArrayName& name, const tensor::Layout& layout, const BadItem& bad,
                                std::int64_t classes);

}  // namespace orthant::data::arrays
