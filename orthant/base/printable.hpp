#pragma once

#include <string>
#include <string_view>

namespace orthant::base {

/// A message as a terminal may be shown it: on one line, without control characters, bytes that are no UTF-8 replaced,
/// and with its middle left out if it is longer than `most` bytes.
std::string one_line(std::string_view text, std::size_t most = 2000);

}  // namespace orthant::base
