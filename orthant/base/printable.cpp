#include "orthant/base/printable.hpp"

#include "orthant/base/format.hpp"

#include <algorithm>

namespace orthant::base {
namespace {

/// How many bytes the character at the front has; 0 if it is one that must not be shown. The second row of control
/// characters (U+0080 to U+009F) is as bad as the first, and so are marks that turn the direction of writing.
std::size_t shown_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= ' ' && first != 0x7F ? 1 : 0;
  if (first >= 0xC2 && first < 0xE0) return follows(1) && !(first == 0xC2 && byte(1) < 0xA0) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    const unsigned code = (first & 15U) << 12U | (byte(1) & 63U) << 6U | (byte(2) & 63U);
    const bool turns =
        (code >= 0x200E && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    return follows(1) && follows(2) && code >= 0x800 && !(code >= 0xD800 && code < 0xE000) && !turns ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    const bool in_range = !(first == 0xF0 && byte(1) < 0x90) && !(first == 0xF4 && byte(1) > 0x8F);
    return follows(1) && follows(2) && follows(3) && in_range ? 4 : 0;
  }
  return 0;
}

std::string shown(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t bytes = shown_bytes(text);
    if (bytes > 0) {
      line += text.substr(0, bytes);
    } else {
      const char c = text.front();
      line += c == '\n' || c == '\r' || c == '\t' ? ' ' : '?';
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return line;
}

}  // namespace

std::string one_line(std::string_view text, std::size_t most) {
  if (text.size() <= most) return shown(text);
  // What is wrong comes first and what to do last.
  const std::size_t half = most / 2;
  return fmt::format("{} [... {} characters ...] {}", shown(text.substr(0, half)), text.size() - 2 * half,
                     shown(text.substr(text.size() - half)));
}

}  // namespace orthant::base
