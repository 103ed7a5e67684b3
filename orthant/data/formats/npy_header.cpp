#include "orthant/base/error.hpp"
#include "orthant/data/formats/npy.hpp"

#include <cctype>
#include <charconv>
#include <map>
#include <optional>

namespace orthant::data::formats {
namespace {

using base::Exit;
using base::fail;

/// A cursor over {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderReader {
 public:
  HeaderReader(const std::string& text, const std::string& path) : text_(text), path_(path) {}

  NpyHeader read() {
    expect('{');
    while (!accept('}')) {
      read_entry();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) refuse("it goes on after the dictionary");
    if (!type_ || !order_ || !shape_) refuse("descr, fortran_order or shape is missing");
    return {.type = *type_, .extents = *shape_, .fortran_order = *order_};
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail(Exit::bad_data, "'{}' is not a readable npy file: bad header: {}", path_, why);
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) refuse(fmt::format("'{}' expected at byte {}", c, at_));
  }

  std::string read_string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"')
      refuse(fmt::format("a quoted word expected at byte {} (structured types are not supported)", at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) refuse("a quote is not closed");
    std::string word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }

  bool accept_word(const std::string& word) {
    skip_space();
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }

  void read_entry() {
    const std::string key = read_string();
    expect(':');
    if (key == "descr" && !type_) {
      type_ = number_type(read_string());
    } else if (key == "fortran_order" && !order_) {
      order_ = accept_word("True");
      if (!*order_ && !accept_word("False")) refuse("fortran_order must be True or False");
    } else if (key == "shape" && !shape_) {
      shape_ = read_shape();
    } else {
      refuse(fmt::format("unexpected key '{}'", key));
    }
  }

  std::vector<std::int64_t> read_shape() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!accept(')')) {
      extents.push_back(read_extent());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  std::int64_t read_extent() {
    skip_space();
    std::int64_t extent = -1;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
    if (error != std::errc() || extent < 0) refuse(fmt::format("the shape has no usable number at byte {}", at_));
    at_ = static_cast<std::size_t>(end - text_.data());
    return extent;
  }

  [[nodiscard]] arrays::NumberType number_type(const std::string& word) const {
    static const std::map<std::string, arrays::NumberType> types{
        {"<f2", arrays::NumberType::f16}, {"<f4", arrays::NumberType::f32}, {"<f8", arrays::NumberType::f64},
        {"|i1", arrays::NumberType::i8},  {"<i2", arrays::NumberType::i16}, {"<i4", arrays::NumberType::i32},
        {"<i8", arrays::NumberType::i64}, {"|u1", arrays::NumberType::u8},  {"<u2", arrays::NumberType::u16},
        {"<u4", arrays::NumberType::u32}, {"<u8", arrays::NumberType::u64}, {"|b1", arrays::NumberType::boolean}};
    const auto found = types.find(word);
    if (found == types.end()) {
      fail(Exit::bad_data,
           "'{}' has numbers of type '{}', which is not supported; save little-endian floats or integers, e.g. "
           "astype('<f4')",
           path_, word);
    }
    return found->second;
  }

  const std::string& text_;
  const std::string& path_;
  std::size_t at_ = 0;
  std::optional<arrays::NumberType> type_;
  std::optional<bool> order_;
  std::optional<std::vector<std::int64_t>> shape_;
};

}  // namespace

NpyHeader parse_npy_header(const std::string& text, const std::string& path) { return HeaderReader(text, path).read(); }

}  // namespace orthant::data::formats
