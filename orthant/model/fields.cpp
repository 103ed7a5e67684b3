#include "orthant/model/fields.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/model/printable.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace orthant::model {
namespace {

template <class Number>
bool parse(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc{} && result.ptr == end;
}

/// A value as a message may show it.
std::string shown(const Document& value) {
  switch (value.kind) {
    case Document::Kind::null: return "empty";
    case Document::Kind::list: return "a list";
    case Document::Kind::map: return "a map";
    case Document::Kind::scalar: break;
  }
  return "'" + printable(value.scalar) + "'";
}

}  // namespace

Fields::Fields(const Document& map, const std::string& origin, std::span<const std::string> known)
    : map_(map), origin_(origin) {
  if (map.kind != Document::Kind::map)
    refuse(map, fmt::format("{} where a map of {} is needed", shown(map), fmt::join(known, ", ")));
  for (const auto& [key, value] : map.entries) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    refuse(value, fmt::format("unknown key '{}'{}", printable(key), base::suggestion(key, known)));
  }
}

Fields::Fields(const Document& map, const std::string& origin) : map_(map), origin_(origin) {
  if (map.kind != Document::Kind::map) refuse(map, fmt::format("{} where a map is needed", shown(map)));
}

const Document* Fields::find(const std::string& key) const {
  const auto found =
      std::find_if(map_.entries.begin(), map_.entries.end(), [&](const auto& entry) { return entry.first == key; });
  return found == map_.entries.end() ? nullptr : &found->second;
}

const Document& Fields::need(const std::string& key) const {
  const Document* value = find(key);
  if (value == nullptr) refuse(map_, fmt::format("key '{}' is missing; add it", key));
  return *value;
}

std::string Fields::word(const std::string& key) const { return word(need(key), key); }
std::int64_t Fields::integer(const std::string& key) const { return integer(need(key), key); }

std::int64_t Fields::integer_or(const std::string& key, std::int64_t fallback) const {
  const Document* value = find(key);
  return value == nullptr ? fallback : integer(*value, key);
}

double Fields::number(const std::string& key) const { return number(need(key), key); }

double Fields::number_or(const std::string& key, double fallback) const {
  const Document* value = find(key);
  return value == nullptr ? fallback : number(*value, key);
}

bool Fields::flag_or(const std::string& key, bool fallback) const {
  const Document* value = find(key);
  if (value == nullptr) return fallback;
  if (value->kind == Document::Kind::scalar && value->scalar == "true") return true;
  if (value->kind == Document::Kind::scalar && value->scalar == "false") return false;
  refuse(*value, fmt::format("{} is {}; it must be true or false", key, shown(*value)));
}

std::string Fields::word(const Document& value, const std::string& what) const {
  if (value.kind != Document::Kind::scalar)
    refuse(value, fmt::format("{} is {}; it must be a word", what, shown(value)));
  return value.scalar;
}

std::int64_t Fields::integer(const Document& value, const std::string& what) const {
  std::int64_t number = 0;
  if (value.kind != Document::Kind::scalar || !parse(value.scalar, number)) {
    refuse(value, fmt::format("{} is {}; it must be a whole number", what, shown(value)));
  }
  return number;
}

double Fields::number(const Document& value, const std::string& what) const {
  double number = 0;
  if (value.kind != Document::Kind::scalar || !parse(value.scalar, number) || !std::isfinite(number)) {
    refuse(value, fmt::format("{} is {}; it must be a number", what, shown(value)));
  }
  return number;
}

std::size_t Fields::choice(const Document& value, const std::string& what, std::span<const std::string> words) const {
  const auto found = std::find(words.begin(), words.end(), word(value, what));
  if (found == words.end()) {
    refuse(value, fmt::format("unknown {} {}{}", what, shown(value), base::suggestion(value.scalar, words)));
  }
  return static_cast<std::size_t>(found - words.begin());
}

void Fields::refuse(const Document& value, const std::string& what) const {
  if (value.line == 0) base::fail(base::Exit::bad_data, "command line: {}", what);
  base::fail(base::Exit::bad_data, "{}:{}: {}", origin_, value.line, what);
}

}  // namespace orthant::model
