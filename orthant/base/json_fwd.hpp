#pragma once

#include <nlohmann/json_fwd.hpp>

namespace orthant::base {

/// JSON that keeps keys in the order in which they were written. Headers include this file, because compiling
/// base/json.hpp takes two seconds.
using Json = nlohmann::ordered_json;

}  // namespace orthant::base
