#pragma once

#include <string>
#include <string_view>

namespace orthant::model {

/// Text from outside as a message may show it: on one line, without control characters, cut after `most` characters.
std::string printable(std::string_view text, std::size_t most = 60);

}  // namespace orthant::model
