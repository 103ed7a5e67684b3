#pragma once

#include <type_traits>

namespace orthant::base {

/// True if T is one of the listed types. A visitor that treats several alternatives alike lists them, so that a new
/// alternative does not compile until somebody has decided what it needs.
template <class T, class... Listed>
concept OneOf = (std::is_same_v<T, Listed> || ...);

}  // namespace orthant::base
