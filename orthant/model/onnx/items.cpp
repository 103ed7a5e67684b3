#include "orthant/base/checked.hpp"
#include "orthant/model/onnx/external.hpp"
#include "orthant/model/onnx/file.hpp"
#include "orthant/model/printable.hpp"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <span>

namespace orthant::model::onnx {
namespace {

using base::Exit;
using base::fail;

template <class Item>
double item_at(const std::byte* at) {
  Item value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

double half(const std::byte* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  double size = 0;
  if (exponent == 31) {
    size = fraction == 0 ? HUGE_VAL : std::nan("");
  } else {
    size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

double brain(const std::byte* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

double value_of(ItemType type, const std::byte* at) {
  switch (type) {
    case ItemType::f32: return item_at<float>(at);
    case ItemType::u8:
    case ItemType::boolean: return item_at<std::uint8_t>(at);
    case ItemType::i8: return item_at<std::int8_t>(at);
    case ItemType::u16: return item_at<std::uint16_t>(at);
    case ItemType::i16: return item_at<std::int16_t>(at);
    case ItemType::i32: return item_at<std::int32_t>(at);
    case ItemType::i64: return item_at<std::int64_t>(at);
    case ItemType::f16: return half(at);
    case ItemType::f64: return item_at<double>(at);
    case ItemType::u32: return item_at<std::uint32_t>(at);
    case ItemType::u64: return item_at<std::uint64_t>(at);
    case ItemType::bf16: return brain(at);
    case ItemType::undefined: break;
  }
  return 0;
}

template <class Value>
void read(const Tensor& tensor, std::int64_t first, std::vector<Value>& into) {
  const std::int64_t size = bytes_of(tensor.type);
  const std::int64_t begin = first * size;
  const auto bytes = static_cast<std::int64_t>(into.size()) * size;
  assert(size > 0 && begin + bytes <= tensor.bytes.size);
  std::vector<std::byte> read_bytes;
  std::span<const std::byte> found;
  if (tensor.bytes.path.empty()) {
    found = std::as_bytes(std::span(tensor.bytes.text)).subspan(static_cast<std::size_t>(begin));
  } else {
    read_bytes.resize(static_cast<std::size_t>(bytes));
    open_bytes(tensor.bytes).read(tensor.bytes.offset + begin, read_bytes);
    found = read_bytes;
  }
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i] = static_cast<Value>(value_of(tensor.type, found.data() + i * static_cast<std::size_t>(size)));
  }
}

}  // namespace

std::int64_t bytes_of(ItemType type) {
  switch (type) {
    case ItemType::u8:
    case ItemType::i8:
    case ItemType::boolean: return 1;
    case ItemType::u16:
    case ItemType::i16:
    case ItemType::f16:
    case ItemType::bf16: return 2;
    case ItemType::f32:
    case ItemType::i32:
    case ItemType::u32: return 4;
    case ItemType::i64:
    case ItemType::f64:
    case ItemType::u64: return 8;
    case ItemType::undefined: break;
  }
  return 0;
}

std::int64_t item_count(const std::vector<std::int64_t>& extents) {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0) fail(Exit::bad_data, "an extent of {}; extents are at least 0", extent);
    product = base::checked_mul(product, extent);
  }
  return product;
}

void read_items(const Tensor& tensor, std::vector<double>& into) { read(tensor, 0, into); }
void read_items(const Tensor& tensor, std::int64_t first, std::vector<float>& into) { read(tensor, first, into); }

}  // namespace orthant::model::onnx
