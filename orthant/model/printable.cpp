#include "orthant/model/printable.hpp"

#include <algorithm>

namespace orthant::model {

std::string printable(std::string_view text, std::size_t most) {
  std::string line(text.substr(0, most));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return line;
}

}  // namespace orthant::model
