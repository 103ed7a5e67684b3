#include "orthant/model/zoo/settings.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/model/printable.hpp"

#include <charconv>

namespace orthant::model::zoo {
namespace {

using base::Exit;
using base::fail;

/// More channels, classes or outputs than this are a mistake.
constexpr std::int64_t largest = 1'000'000;

template <class Number>
bool parse(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc{} && result.ptr == end;
}

}  // namespace

Settings::Settings(const ZooEntry& entry, const SettingValues& values) : network_(entry.name) {
  std::vector<std::string> known;
  for (const ZooSetting& setting : entry.settings) {
    known.push_back(setting.name);
    values_[setting.name] = setting.value;
  }
  for (const auto& [name, value] : values) {
    if (!values_.contains(name))
      fail(Exit::usage, "{}: no setting '{}'{}", network_, printable(name), base::suggestion(name, known));
    values_[name] = value;
  }
}

const std::string& Settings::text(const std::string& name) const { return values_.at(name); }

std::int64_t Settings::at_least(std::int64_t least, const std::string& name) const {
  std::int64_t number = 0;
  if (!parse(text(name), number) || number < least || number > largest) {
    fail(Exit::usage, "{}: setting {} is '{}'; it must be a whole number from {} to {}", network_, name,
         printable(text(name)), least, largest);
  }
  return number;
}

double Settings::rate(const std::string& name) const {
  double number = 0;
  if (!parse(text(name), number) || !(number >= 0 && number < 1)) {
    fail(Exit::usage, "{}: setting {} is '{}'; it must be a number from 0 to below 1", network_, name,
         printable(text(name)));
  }
  return number;
}

bool Settings::flag(const std::string& name) const {
  if (text(name) == "true") return true;
  if (text(name) == "false") return false;
  fail(Exit::usage, "{}: setting {} is '{}'; it must be true or false", network_, name, printable(text(name)));
}

}  // namespace orthant::model::zoo
