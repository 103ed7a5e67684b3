#include "tests/support/region.hpp"

#include <algorithm>
#include <cstring>

namespace orthant::test {
namespace {

template <class T>
Numbers load(const std::byte* from, std::int64_t count) {
  Numbers numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof value);
    numbers[i] = static_cast<double>(value);
  }
  return numbers;
}

template <class T>
void store(std::byte* to, double number) {
  const T value = static_cast<T>(number);
  std::memcpy(to, &value, sizeof value);
}

/// True if items of `width` bytes agree wherever they are not written. The width is a constant of the compiler's, which
/// makes one comparison of numbers out of each.
template <std::size_t width>
bool agree(const std::byte* a, const std::byte* b, const std::vector<char>& written) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (!written[i] && std::memcmp(a + i * width, b + i * width, width) != 0) return false;
  }
  return true;
}

}  // namespace

Region::Region(ItemType type, std::int64_t items) : type_(type), items_(items) {
  const std::int64_t total = items * bytes_of(type) + 2 * guard_bytes;
  lines_.resize(static_cast<std::size_t>((total + 63) / 64));
  std::fill_n(bytes(), size(), untouched);
}

void Region::set(std::int64_t item, double value) {
  std::byte* to = bytes() + guard_bytes + item * bytes_of(type_);
  switch (type_) {
    case ItemType::float32: return store<float>(to, value);
    case ItemType::int32: return store<std::int32_t>(to, value);
    case ItemType::uint8: return store<std::uint8_t>(to, value);
    case ItemType::uint16: return store<std::uint16_t>(to, value);
    case ItemType::float64: return store<double>(to, value);
  }
}

Numbers Region::numbers() const {
  const std::byte* from = bytes() + guard_bytes;
  switch (type_) {
    case ItemType::float32: return load<float>(from, items_);
    case ItemType::int32: return load<std::int32_t>(from, items_);
    case ItemType::uint8: return load<std::uint8_t>(from, items_);
    case ItemType::uint16: return load<std::uint16_t>(from, items_);
    case ItemType::float64: break;
  }
  return load<double>(from, items_);
}

bool Region::guards_are_intact() const {
  const auto intact = [](std::byte byte) { return byte == untouched; };
  const std::byte* end = bytes() + guard_bytes + items_ * bytes_of(type_);
  return std::all_of(bytes(), bytes() + guard_bytes, intact) && std::all_of(end, bytes() + size(), intact);
}

bool Region::agrees_outside(const Region& other, const std::vector<char>& written) const {
  const std::byte* a = bytes() + guard_bytes;
  const std::byte* b = other.bytes() + guard_bytes;
  switch (bytes_of(type_)) {
    case 1: return agree<1>(a, b, written);
    case 2: return agree<2>(a, b, written);
    case 4: return agree<4>(a, b, written);
    default: return agree<8>(a, b, written);
  }
}

bool Region::same_bytes(const Region& other) const {
  return size() == other.size() && std::memcmp(bytes(), other.bytes(), static_cast<std::size_t>(size())) == 0;
}

}  // namespace orthant::test
