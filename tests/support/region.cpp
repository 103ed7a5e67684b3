#include "tests/support/region.hpp"

#include <algorithm>
#include <cstring>

namespace orthant::test {
namespace {

template <class T>
Numbers load(const std::byte* from, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  if (count > 0) std::memcpy(values.data(), from, values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

template <class T>
void store(std::byte* to, double number) {
  const T value = static_cast<T>(number);
  std::memcpy(to, &value, sizeof value);
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
  const auto width = static_cast<std::size_t>(bytes_of(type_));
  for (std::size_t i = 0; i < written.size(); ++i) {
    const std::size_t at = guard_bytes + i * width;
    if (!written[i] && std::memcmp(bytes() + at, other.bytes() + at, width) != 0) return false;
  }
  return true;
}

bool Region::same_bytes(const Region& other) const { return std::equal(bytes(), bytes() + size(), other.bytes()); }

}  // namespace orthant::test
