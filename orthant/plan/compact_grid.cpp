#include "orthant/plan/compact_grid.hpp"

#include "orthant/base/error.hpp"

#include <array>
#include <cctype>

namespace orthant::plan {
namespace {

using base::Exit;
using base::fail;

struct Letter {
  char name;
  int CompactGrid::*count;
};

/// In the order in which they are written.
constexpr std::array<Letter, 7> letters{{{'n', &CompactGrid::n},
                                         {'f', &CompactGrid::f},
                                         {'c', &CompactGrid::c},
                                         {'d', &CompactGrid::d},
                                         {'h', &CompactGrid::h},
                                         {'w', &CompactGrid::w},
                                         {'p', &CompactGrid::p}}};
constexpr std::int64_t most_ranks = 1 << 20;
constexpr std::size_t most_digits = 7;

const Letter& letter_of(const std::string& text, std::size_t at) {
  for (const Letter& letter : letters) {
    if (letter.name == text[at]) return letter;
  }
  const auto byte = static_cast<unsigned char>(text[at]);
  if (std::isdigit(byte) != 0) {
    fail(Exit::usage, "grid '{}': a number without a letter at place {}; write e.g. n2d2h2", text, at + 1);
  }
  const std::string shown = std::isprint(byte) != 0 ? std::string(1, text[at]) : "?";
  fail(
      Exit::usage,
      "grid '{}': unknown letter '{}' at place {}; known are n (samples), d h w (space), f (filters), c (channels) and "
      "p (pipeline stages), e.g. n2d2h2",
      text, shown, at + 1);
}

}  // namespace

CompactGrid parse_grid(const std::string& text) {
  CompactGrid grid;
  if (text.empty()) fail(Exit::usage, "an empty grid; write letters with numbers, e.g. n2d2h2");
  if (text == "1") return grid;
  std::string seen;
  std::int64_t ranks = 1;
  for (std::size_t at = 0; at < text.size();) {
    const Letter& letter = letter_of(text, at);
    if (seen.find(letter.name) != std::string::npos) {
      fail(Exit::usage, "grid '{}': {} is there twice; write it once, e.g. {}4", text, letter.name, letter.name);
    }
    seen += letter.name;
    std::string digits;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) digits += text[at];
    if (digits.empty()) {
      fail(Exit::usage, "grid '{}': {} has no number; write e.g. {}2", text, letter.name, letter.name);
    }
    const std::int64_t count = digits.size() > most_digits ? most_ranks + 1 : std::stoll(digits);
    if (count < 1) fail(Exit::usage, "grid '{}': {} is 0; it must be at least 1", text, letter.name);
    ranks *= count;
    if (ranks > most_ranks) {
      fail(Exit::usage, "grid '{}' has too many parts; at most {} ranks are supported", text, most_ranks);
    }
    grid.*letter.count = static_cast<int>(count);
  }
  return grid;
}

std::string to_text(const CompactGrid& grid) {
  std::string text;
  for (const Letter& letter : letters) {
    if (grid.*letter.count > 1) text += letter.name + std::to_string(grid.*letter.count);
  }
  return text.empty() ? "1" : text;
}

int stage_ranks(const CompactGrid& grid) { return tensor::parts(dst_grid(grid)); }

int total_ranks(const CompactGrid& grid) { return stage_ranks(grid) * grid.p; }

tensor::Grid dst_grid(const CompactGrid& grid) {
  return {.n = grid.n, .c = grid.f * grid.c, .d = grid.d, .h = grid.h, .w = grid.w};
}

}  // namespace orthant::plan
