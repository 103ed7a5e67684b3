#include "tests/kernels/shape_list.hpp"

#include "orthant/base/error.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

namespace orthant::test {
namespace {

using tensor::Extent3;

/// "3x4x5" or "3".
std::optional<std::vector<std::int64_t>> read_numbers(std::string_view text) {
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (true) {
    std::int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) return std::nullopt;
    numbers.push_back(number);
    if (next == end) return numbers;
    if (*next != 'x') return std::nullopt;
    at = next + 1;
  }
}

Extent3* spatial_field(ShapeLine& line, char letter) {
  switch (letter) {
    case 'i': return &line.input;
    case 'k': return &line.window.size;
    case 's': return &line.window.stride;
    case 'l': return &line.window.dilation;
    case 'p': return &line.window.pad_lo;
    case 'q': return &line.window.pad_hi;
    default: return nullptr;
  }
}

std::int64_t* scalar_field(ShapeLine& line, char letter) {
  switch (letter) {
    case 'n': return &line.n;
    case 'c': return &line.c;
    case 'f': return &line.f;
    case 'g': return &line.g;
    default: return nullptr;
  }
}

/// Sets what a word says; false if it says nothing.
bool read_word(const std::string& word, ShapeLine& line) {
  if (word == "max" || word == "average" || word == "average_inside") {
    line.kind = word;
    return true;
  }
  const auto numbers = read_numbers(std::string_view(word).substr(1));
  if (!numbers) return false;
  if (std::int64_t* field = scalar_field(line, word[0]); field && numbers->size() == 1) {
    *field = numbers->front();
    return true;
  }
  Extent3* field = spatial_field(line, word[0]);
  if (!field || (numbers->size() != 1 && numbers->size() != 3)) return false;
  *field = {numbers->front(), numbers->at(numbers->size() / 2), numbers->back()};
  return true;
}

}  // namespace

namespace {

/// One of so many lines, as ORTHANT_TEST_EVERY asks for where time is short.
std::vector<ShapeLine> every(const std::vector<ShapeLine>& all) {
  const char* value = std::getenv("ORTHANT_TEST_EVERY");
  const auto step = static_cast<std::size_t>(std::max(1, value ? std::atoi(value) : 1));
  std::vector<ShapeLine> some;
  for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
  return some;
}

}  // namespace

std::vector<ShapeLine> read_shapes(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) base::fail(base::Exit::missing_input, "{}: cannot be read", file);
  std::vector<ShapeLine> shapes;
  std::string text;
  for (int number = 1; std::getline(stream, text); ++number) {
    std::istringstream words(text.substr(0, text.find('#')));
    ShapeLine line;
    line.text = text;
    bool any = false, above = false;
    for (std::string word; words >> word; any = true) {
      if (!read_word(word, line)) base::fail(base::Exit::bad_data, "{}:{}: '{}' is not understood", file, number, word);
      above = above || word[0] == 'q';
    }
    if (!above) line.window.pad_hi = line.window.pad_lo;
    if (any) shapes.push_back(line);
  }
  return every(shapes);
}

tensor::Shape src_shape(const ShapeLine& line) {
  return {.n = line.n, .c = line.c, .d = line.input.d, .h = line.input.h, .w = line.input.w};
}

tensor::Shape dst_shape(const ShapeLine& line) {
  const Extent3 dst = tensor::window_output(line.window, line.input);
  return {.n = line.n, .c = line.f, .d = dst.d, .h = dst.h, .w = dst.w};
}

}  // namespace orthant::test
