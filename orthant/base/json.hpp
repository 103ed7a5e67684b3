#pragma once

#include "orthant/base/json_fwd.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace orthant::base {

/// Reads JSON text; `origin` names it in messages. Throws Error if it is malformed or an object has the same key twice.
Json parse_json(std::string_view text, const std::string& origin);

}  // namespace orthant::base
