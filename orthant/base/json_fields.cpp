#include "orthant/base/json_fields.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/base/nearest.hpp"

#include <algorithm>
#include <utility>

namespace orthant::base {
namespace {

/// A value as a message shows it: not more than fits into a line.
std::string shown(const Json& value) {
  constexpr std::size_t longest = 40;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

}  // namespace

JsonFields::JsonFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) fail(Exit::bad_data, "{}: must be an object, not {}", where_, shown(object));
}

bool JsonFields::has(const char* key) const { return object_.contains(key); }

void JsonFields::allow(std::span<const std::string> known) const {
  for (const auto& item : object_.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      fail(Exit::bad_data, "{}: unknown key '{}'{}", where_, item.key(), suggestion(item.key(), known));
  }
}

const Json& JsonFields::need(const char* key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) fail(Exit::bad_data, "{}: '{}' is missing", where_, key);
  return *found;
}

std::int64_t JsonFields::whole(const char* key, std::int64_t least, std::int64_t most) const {
  const Json& value = need(key);
  if (!value.is_number_integer() || value < least || value > most)
    fail(Exit::bad_data, "{}: '{}' is {}; it must be a whole number from {} to {}", where_, key, shown(value), least,
         most);
  return value.get<std::int64_t>();
}

int JsonFields::whole(const char* key, int least, int most) const {
  return static_cast<int>(whole(key, std::int64_t{least}, std::int64_t{most}));
}

int JsonFields::whole_or(const char* key, int least, int most, int otherwise) const {
  return has(key) ? whole(key, least, most) : otherwise;
}

double JsonFields::real(const char* key, double least, double most) const {
  const Json& value = need(key);
  const double number = value.is_number() ? value.get<double>() : least;
  if (!value.is_number() || !(number >= least && number <= most))
    fail(Exit::bad_data, "{}: '{}' is {}; it must be a number from {} to {}", where_, key, shown(value), least, most);
  return number;
}

std::string JsonFields::text(const char* key) const {
  const Json& value = need(key);
  if (!value.is_string()) fail(Exit::bad_data, "{}: '{}' is {}; it must be a text", where_, key, shown(value));
  return value.get<std::string>();
}

bool JsonFields::flag(const char* key) const {
  const Json& value = need(key);
  if (!value.is_boolean()) fail(Exit::bad_data, "{}: '{}' is {}; it must be true or false", where_, key, shown(value));
  return value.get<bool>();
}

std::size_t JsonFields::word(const char* key, std::span<const std::string> known) const {
  const Json& value = need(key);
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  const auto found = std::find(known.begin(), known.end(), text);
  if (!value.is_string() || found == known.end())
    fail(Exit::bad_data, "{}: '{}' is {}{}", where_, key, shown(value), suggestion(text, known));
  return static_cast<std::size_t>(found - known.begin());
}

JsonFields JsonFields::object(const char* key) const { return {need(key), fmt::format("{}: {}", where_, key)}; }

const Json& JsonFields::list(const char* key) const {
  const Json& value = need(key);
  if (!value.is_array()) fail(Exit::bad_data, "{}: '{}' must be a list", where_, key);
  return value;
}

}  // namespace orthant::base
