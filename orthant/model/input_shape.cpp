#include "orthant/model/input_shape.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/model/printable.hpp"

#include <charconv>
#include <limits>
#include <vector>

namespace orthant::model {
namespace {

using base::Exit;
using base::fail;

constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
constexpr const char* remedy = "write CxDxHxW as 4x128x128x128, CxHxW as 3x224x224, or CxW as 2x4096";

std::int64_t parse_extent(std::string_view part, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error == std::errc::result_out_of_range)
    fail(Exit::usage, "input '{}': an extent is too large; at most {} is supported", printable(text), largest);
  if (error != std::errc{} || end != part.data() + part.size()) {
    fail(Exit::usage, "input '{}': '{}' is not a number; {}", printable(text), printable(part), remedy);
  }
  if (value < 1) fail(Exit::usage, "input '{}': an extent is {}; each must be at least 1", printable(text), value);
  if (value > largest)
    fail(Exit::usage, "input '{}': an extent is {}; at most {} is supported", printable(text), value, largest);
  return value;
}

}  // namespace

InputShape parse_input(std::string_view text, std::int64_t mini_batch) {
  check_mini_batch(mini_batch);
  std::vector<std::int64_t> extents;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    if (extents.size() == 4) fail(Exit::usage, "input '{}': more than four extents; {}", printable(text), remedy);
    extents.push_back(parse_extent(text.substr(begin, end - begin), text));
    begin = end + 1;
  }
  if (extents.size() == 4) return {{mini_batch, extents[0], extents[1], extents[2], extents[3]}, 3};
  if (extents.size() == 3) return {{mini_batch, extents[0], 1, extents[1], extents[2]}, 2};
  if (extents.size() == 2) return {{mini_batch, extents[0], 1, 1, extents[1]}, 1};
  fail(Exit::usage, "input '{}': {} extents; {}", printable(text), extents.size(), remedy);
}

std::string input_text(const InputShape& input) {
  std::string text = fmt::format("{}", input.shape.c);
  for (const tensor::Dim dim : tensor::named_dims(input.spatial_count)) text += fmt::format("x{}", input.shape[dim]);
  return text;
}

void check_mini_batch(std::int64_t mini_batch) {
  if (mini_batch < 1 || mini_batch > largest) {
    fail(Exit::usage, "a mini-batch of {} samples; it must be from 1 to {}", mini_batch, largest);
  }
}

}  // namespace orthant::model
