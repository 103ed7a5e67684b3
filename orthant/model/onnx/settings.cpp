#include "orthant/model/onnx/settings.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/model/printable.hpp"

#include <charconv>
#include <vector>

namespace orthant::model::onnx {
namespace {

using base::Exit;
using base::fail;

constexpr LossKind kinds[] = {LossKind::mean_squared_error, LossKind::mean_absolute_error, LossKind::cross_entropy,
                              LossKind::soft_dice};

/// "cross_entropy" or "0.5*cross_entropy".
LossTerm read_term(const std::string& path, const std::string& text) {
  LossTerm term;
  std::string word = text;
  if (const std::size_t star = text.find('*'); star != std::string::npos) {
    const char* const end = text.data() + star;
    const auto [stop, error] = std::from_chars(text.data(), end, term.weight);
    if (error != std::errc() || stop != end)
      fail(Exit::usage, "{}: loss '{}': the weight before '*' is no number", path, printable(text));
    word = text.substr(star + 1);
  }
  std::vector<std::string> known;
  for (const LossKind kind : kinds) {
    if (word == name_of(kind)) {
      term.kind = kind;
      return term;
    }
    known.emplace_back(name_of(kind));
  }
  fail(Exit::usage, "{}: no loss '{}'{}", path, printable(word), base::suggestion(word, known));
}

Loss read_loss(const std::string& path, const std::string& text) {
  Loss loss;
  std::size_t first = 0;
  while (true) {
    const std::size_t plus = text.find('+', first);
    loss.terms.push_back(read_term(path, text.substr(first, plus == std::string::npos ? plus : plus - first)));
    if (plus == std::string::npos) return loss;
    first = plus + 1;
  }
}

}  // namespace

Settings read_settings(const std::string& path, const SettingValues& values) {
  const std::vector<std::string> known{"output", "loss", "weights"};
  Settings settings;
  for (const auto& [key, value] : values) {
    if (key == "output") {
      if (value.empty()) fail(Exit::usage, "{}: setting 'output' is empty; name one of the outputs", path);
      settings.output = value;
    } else if (key == "loss") {
      settings.loss = read_loss(path, value);
    } else if (key == "weights") {
      if (value != "file" && value != "random")
        fail(Exit::usage, "{}: weights={}; say file or random", path, printable(value));
      settings.random_weights = value == "random";
    } else {
      fail(Exit::usage, "{}: no setting '{}' of an ONNX file{}", path, printable(key), base::suggestion(key, known));
    }
  }
  return settings;
}

}  // namespace orthant::model::onnx
