#include "orthant/train/run_fields.hpp"

#include "orthant/base/format.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace orthant::train {

using model::Document;
using model::Fields;

std::int64_t integer_in(const Fields& fields, const std::string& key, std::int64_t fallback, std::int64_t low,
                        std::int64_t high) {
  const std::int64_t value = fields.integer_or(key, fallback);
  if (fields.find(key) != nullptr && (value < low || value > high)) {
    fields.refuse(*fields.find(key), fmt::format("{} is {}; it must be from {} to {}", key, value, low, high));
  }
  return value;
}

double number_in(const Fields& fields, const std::string& key, double fallback, double low, double high) {
  const double value = fields.number_or(key, fallback);
  // Written so that a nan is refused, too.
  if (fields.find(key) != nullptr && !(value >= low && value <= high)) {
    fields.refuse(*fields.find(key), fmt::format("{} is {}; it must be from {} to {}", key, value, low, high));
  }
  return value;
}

double number_below(const Fields& fields, const std::string& key, double fallback, double end) {
  const double value = fields.number_or(key, fallback);
  // What is rounded to `end` in float32 counts as `end`.
  if (fields.find(key) != nullptr && !(value >= 0 && static_cast<float>(value) < static_cast<float>(end)))
    fields.refuse(*fields.find(key), fmt::format("{} is {}; it must be from 0 on and below {}", key, value, end));
  return value;
}

std::int64_t bytes_or(const Fields& fields, const std::string& key, std::int64_t fallback) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  if (fields.find(key) == nullptr) return fallback;
  const std::string text = fields.word(key);
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto* found = unit.empty() ? units.begin() : std::find(units.begin(), units.end(), unit);
  const double bytes = std::ldexp(number, 10 * static_cast<int>(found - units.begin()));
  if (error != std::errc() || found == units.end() || !(bytes >= 1 && bytes < 0x1p62))
    fields.refuse(*fields.find(key), fmt::format("{} is '{}'; it must be a number of bytes, e.g. 4GiB", key, text));
  return static_cast<std::int64_t>(bytes);
}

std::uint64_t read_seed(const Fields& fields) {
  return static_cast<std::uint64_t>(integer_in(fields, "seed", 1, 0, std::numeric_limits<std::int64_t>::max()));
}

std::string word_or(const Fields& fields, const std::string& key, const std::string& fallback) {
  return fields.find(key) == nullptr ? fallback : fields.word(key);
}

std::size_t choice_or_first(const Fields& fields, const std::string& key, const Words& words) {
  return fields.find(key) == nullptr ? 0 : fields.choice(*fields.find(key), key, words);
}

/// "optimizer: adam" is short for "optimizer: {kind: adam}".
Document as_map(const Document& value, const std::string& key) {
  if (value.kind != Document::Kind::scalar) return value;
  Document map{.kind = Document::Kind::map, .line = value.line, .scalar = {}, .items = {}, .entries = {}};
  map.entries.emplace_back(key, value);
  return map;
}

Words read_paths(const Fields& fields, const std::string& key) {
  const Document& value = fields.need(key);
  if (value.kind == Document::Kind::scalar) return {value.scalar};
  if (value.kind != Document::Kind::list || value.items.empty())
    fields.refuse(value, key + " must be a path or a list of paths");
  Words paths;
  for (const Document& item : value.items) paths.push_back(fields.word(item, key));
  return paths;
}

}  // namespace orthant::train
