#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orthant::base {

/// The known word with the smallest edit distance to `word`, or "" if none is close.
std::string nearest(std::string_view word, std::span<const std::string> known);

/// The end of an error message about an unknown word: "; did you mean 'x'?" or a list of the known words.
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace orthant::base
