#pragma once

#include <nlohmann/json_fwd.hpp>

namespace orthant::base {

/// JSON with keys in the order in which they were written. For headers: base/json.hpp takes the compiler two seconds.
using Json = nlohmann::ordered_json;

}  // namespace orthant::base
