#include "orthant/base/json.hpp"

#include "orthant/base/error.hpp"

#include <set>
#include <vector>

namespace orthant::base {
namespace {

constexpr int deepest = 64;

/// Sees every key while nlohmann parses, because nlohmann silently keeps the last of two equal keys.
class KeyCheck {
 public:
  explicit KeyCheck(const std::string& origin) : origin_(origin) {}

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (depth > deepest) fail(Exit::bad_data, "{}: JSON nested more than {} deep", origin_, deepest);
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.back().insert(value.get<std::string>()).second) {
      fail(Exit::bad_data, "{}: key '{}' appears twice", origin_, value.get<std::string>());
    }
    return true;
  }

 private:
  const std::string& origin_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& origin) {
  try {
    return Json::parse(text, KeyCheck(origin));
  } catch (const Json::exception& error) {
    fail(Exit::bad_data, "{}: not JSON: {}", origin, error.what());
  }
}

}  // namespace orthant::base
