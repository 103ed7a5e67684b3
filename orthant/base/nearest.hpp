#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orthant::base {

/// The known word with the smallest edit distance to `word`, or "" if none is close.
std::string nearest(std::string_view word, std::span<const std::string> known);

/// "; did you mean 'x'?" or a list of what is known: the end of an error about an unknown word.
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace orthant::base
