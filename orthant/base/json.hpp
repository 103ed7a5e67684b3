#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace orthant::base {

/// JSON with keys in the order in which they were written.
using Json = nlohmann::ordered_json;

/// Reads JSON text; `origin` names it in messages. Throws Error where it is malformed or has a key twice.
Json parse_json(std::string_view text, const std::string& origin);

}  // namespace orthant::base
