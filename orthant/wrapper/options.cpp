#include "orthant/wrapper/options.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"

#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

namespace orthant::wrapper {
namespace {

std::string value_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value ? value : "";
}

std::optional<std::int64_t> bytes_of(const Environment& environment, const char* name) {
  const std::string text = value_of(environment, name);
  if (text.empty()) return std::nullopt;
  const auto bytes = bytes_from(text);
  if (!bytes)
    base::fail(base::Exit::usage, "{} is '{}', which is no number of bytes; write 64MiB, for example", name, text);
  return bytes;
}

/// The meaning of the word that a variable holds, or `otherwise` where it is not set.
template <class Meaning>
Meaning word_of(const Environment& environment, const char* name, Meaning otherwise,
                const std::vector<std::pair<std::string, Meaning>>& words) {
  const std::string text = value_of(environment, name);
  if (text.empty()) return otherwise;
  std::vector<std::string> known;
  for (const auto& [word, meaning] : words) {
    if (word == text) return meaning;
    known.push_back(word);
  }
  base::fail(base::Exit::usage, "{} is '{}'{}", name, text, base::suggestion(text, known));
}

}  // namespace

std::optional<std::int64_t> bytes_from(const std::string& text) {
  static const std::array<std::pair<std::string, double>, 7> units{
      {{"", 1}, {"B", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"MB", 1e6}, {"GB", 1e9}}};
  constexpr double most = 1e18;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(number) || number < 0) return std::nullopt;
  while (*end == ' ') ++end;
  for (const auto& [unit, factor] : units) {
    if (unit == end && number * factor < most) return static_cast<std::int64_t>(number * factor);
  }
  return std::nullopt;
}

Options read_options(const Environment& environment) {
  using microbatch::Policy;
  Options options;
  options.limit_bytes = bytes_of(environment, "ORTHANT_WORKSPACE_LIMIT").value_or(options.limit_bytes);
  options.total_bytes = bytes_of(environment, "ORTHANT_TOTAL_WORKSPACE");
  options.policy =
      word_of<Policy>(environment, "ORTHANT_BATCH_POLICY", options.policy,
                      {{"undivided", Policy::undivided}, {"powerOfTwo", Policy::power_of_two}, {"all", Policy::all}});
  options.fast = word_of<bool>(environment, "ORTHANT_ERROR", options.fast, {{"exact", false}, {"fast", true}});
  options.summary = word_of<bool>(environment, "ORTHANT_SUMMARY", options.summary, {{"0", false}, {"1", true}});
  return options;
}

}  // namespace orthant::wrapper
