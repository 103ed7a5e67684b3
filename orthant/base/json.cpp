#include "orthant/base/json.hpp"

#include "orthant/base/error.hpp"

#include <unordered_set>
#include <vector>

namespace orthant::base {
namespace {

constexpr std::size_t deepest = 64;

/// Sees every key before nlohmann builds the value, because nlohmann silently keeps the last of two equal keys. (Its
/// own callback while it builds looks at all members of an object again after each of them.)
class KeyCheck final : public nlohmann::json_sax<Json> {
 public:
  explicit KeyCheck(const std::string& origin) : origin_(origin) {}

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*count*/) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*count*/) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) fail(Exit::bad_data, "{}: key '{}' appears twice", origin_, key);
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const Json::exception& error) override {
    fail(Exit::bad_data, "{}: not JSON: {}", origin_, error.what());
  }

 private:
  bool open() {
    if (keys_.size() == deepest) fail(Exit::bad_data, "{}: JSON nested more than {} deep", origin_, deepest);
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  const std::string& origin_;
  std::vector<std::unordered_set<std::string>> keys_;  ///< of the objects and lists that are open
};

}  // namespace

Json parse_json(std::string_view text, const std::string& origin) {
  try {
    KeyCheck check(origin);
    Json::sax_parse(text, &check);
    return Json::parse(text);
  } catch (const Json::exception& error) {
    fail(Exit::bad_data, "{}: not JSON: {}", origin, error.what());
  }
}

}  // namespace orthant::base
