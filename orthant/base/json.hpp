#pragma once

#include "orthant/base/json_fwd.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace orthant::base {

/// Reads JSON text; `origin` names it in messages. Throws Error where it is malformed or has a key twice.
Json parse_json(std::string_view text, const std::string& origin);

}  // namespace orthant::base
