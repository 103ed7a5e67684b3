#pragma once

#include "orthant/model/document.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orthant::model {

/// Strict reading of a YAML map. Every error is "<origin>:<line>: ..." with exit code 65.
class Fields {
 public:
  /// Throws Error if `map` is no map, or has a key that is not among `known` (naming the nearest).
  Fields(const Document& map, const std::string& origin, std::span<const std::string> known);

  /// Any keys may be there. Throws Error if `map` is no map.
  Fields(const Document& map, const std::string& origin);

  [[nodiscard]] int line() const { return map_.line; }
  /// Null if the key is absent.
  [[nodiscard]] const Document* find(const std::string& key) const;
  /// Throws if the key is absent.
  [[nodiscard]] const Document& need(const std::string& key) const;

  [[nodiscard]] std::string word(const std::string& key) const;
  [[nodiscard]] std::int64_t integer(const std::string& key) const;
  [[nodiscard]] std::int64_t integer_or(const std::string& key, std::int64_t fallback) const;
  [[nodiscard]] double number(const std::string& key) const;
  [[nodiscard]] double number_or(const std::string& key, double fallback) const;
  [[nodiscard]] bool flag_or(const std::string& key, bool fallback) const;
  /// The same for values that are not directly under a key.
  [[nodiscard]] std::string word(const Document& value, const std::string& what) const;
  [[nodiscard]] std::int64_t integer(const Document& value, const std::string& what) const;
  [[nodiscard]] double number(const Document& value, const std::string& what) const;
  /// The index of the value in `words`.
  [[nodiscard]] std::size_t choice(const Document& value, const std::string& what,
                                   std::span<const std::string> words) const;

  [[noreturn]] void refuse(const Document& value, const std::string& what) const;

 private:
  const Document& map_;
  const std::string& origin_;
};

}  // namespace orthant::model
