#include "tests/support/region.hpp"

#include <algorithm>
#include <cstring>

namespace orthant::test {
namespace {

template <class T>
double load(const std::byte* from) {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
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
  std::fill_n(bytes(), size(), std::byte{0xff});  // NaN as float and double, -1 as label, no tap as argmax
}

double Region::get(std::int64_t item) const {
  const std::byte* from = bytes() + guard_bytes + item * bytes_of(type_);
  switch (type_) {
    case ItemType::float32: return load<float>(from);
    case ItemType::int32: return load<std::int32_t>(from);
    case ItemType::uint8: return load<std::uint8_t>(from);
    case ItemType::uint16: return load<std::uint16_t>(from);
    case ItemType::float64: break;
  }
  return load<double>(from);
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
  Numbers all(static_cast<std::size_t>(items_));
  for (std::int64_t i = 0; i < items_; ++i) all[static_cast<std::size_t>(i)] = get(i);
  return all;
}

bool Region::agrees_outside(const Region& other, const std::vector<bool>& written) const {
  const std::int64_t item_bytes = bytes_of(type_);
  for (std::int64_t i = 0; i < size(); ++i) {
    const std::int64_t item = (i - guard_bytes) / item_bytes;
    const bool free = i >= guard_bytes && item < items_ && written.at(static_cast<std::size_t>(item));
    if (!free && bytes()[i] != other.bytes()[i]) return false;
  }
  return true;
}

bool Region::same_bytes(const Region& other) const { return std::equal(bytes(), bytes() + size(), other.bytes()); }

}  // namespace orthant::test
