#pragma once

#include "tests/support/arguments.hpp"
#include "tests/support/reference.hpp"

#include <cstddef>

namespace orthant::test {

/// Memory of one argument between two guards. Everything starts as a value that no kernel writes and that
/// spoils what is computed from it: NaN, or an index far out of range.
class Region {
 public:
  Region(ItemType type, std::int64_t items);

  [[nodiscard]] ItemType type() const { return type_; }
  [[nodiscard]] std::int64_t items() const { return items_; }
  /// 64-byte aligned, as the engine's buffers are.
  [[nodiscard]] void* data() { return bytes() + guard_bytes; }
  void set(std::int64_t item, double value);
  [[nodiscard]] Numbers numbers() const;

  /// True if nothing was written before the first item or after the last.
  [[nodiscard]] bool guards_are_intact() const;
  /// True if both agree in every item that is not `written`.
  [[nodiscard]] bool agrees_outside(const Region& other, const std::vector<char>& written) const;
  [[nodiscard]] bool same_bytes(const Region& other) const;

 private:
  static constexpr std::int64_t guard_bytes = 256;
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  static constexpr std::byte untouched{0xff};  ///< NaN as float and double, -1 as label, no tap as argmax

  [[nodiscard]] std::byte* bytes() { return lines_.front().bytes; }
  [[nodiscard]] const std::byte* bytes() const { return lines_.front().bytes; }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(lines_.size() * sizeof(Line)); }

  ItemType type_;
  std::int64_t items_;
  std::vector<Line> lines_;
};

}  // namespace orthant::test
