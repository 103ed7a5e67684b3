#pragma once

#include "orthant/base/json_fwd.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace orthant::base {

/// Strict reading of a JSON object. Every error has exit code 65 and names the place, the key and the reason. The
/// object must outlive it.
class JsonFields {
 public:
  /// Throws Error if it is no object. `where` is the place: the file and what is inside of what.
  JsonFields(const Json& object, std::string where);

  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] bool has(const char* key) const;
  /// Throws Error for any other key, with the nearest.
  void allow(std::span<const std::string> known) const;
  /// Throws Error if the key is absent.
  [[nodiscard]] const Json& need(const char* key) const;

  [[nodiscard]] std::int64_t whole(const char* key, std::int64_t least, std::int64_t most) const;
  [[nodiscard]] int whole(const char* key, int least, int most) const;
  [[nodiscard]] int whole_or(const char* key, int least, int most, int otherwise) const;
  [[nodiscard]] double real(const char* key, double least, double most) const;
  [[nodiscard]] std::string text(const char* key) const;
  [[nodiscard]] bool flag(const char* key) const;
  /// The place of a word in the list of those that are known.
  [[nodiscard]] std::size_t word(const char* key, std::span<const std::string> known) const;
  /// An object or a list under a key, whose place is named after it.
  [[nodiscard]] JsonFields object(const char* key) const;
  [[nodiscard]] const Json& list(const char* key) const;

 private:
  const Json& object_;
  std::string where_;
};

}  // namespace orthant::base
