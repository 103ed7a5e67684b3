#include "orthant/model/document.hpp"

#include "orthant/base/error.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>

namespace orthant::model {
namespace {

using base::Exit;
using base::fail;

/// Aliases can make a short file expand without end.
constexpr int most_values = 1'000'000;

class Reader {
 public:
  explicit Reader(const std::string& origin) : origin_(origin) {}

  Document read(const YAML::Node& node) {
    Document document;
    document.line = node.Mark().line + 1;
    if (++values_ > most_values)
      fail(Exit::bad_data, "{}:{}: more than {} values; is this the right file?", origin_, document.line, most_values);
    if (node.IsScalar()) {
      document.kind = Document::Kind::scalar;
      document.scalar = node.Scalar();
    } else if (node.IsSequence()) {
      document.kind = Document::Kind::list;
      for (const YAML::Node& item : node) document.items.push_back(read(item));
    } else if (node.IsMap()) {
      read_map(node, document);
    }
    return document;
  }

 private:
  void read_map(const YAML::Node& node, Document& document) {
    document.kind = Document::Kind::map;
    for (const auto& entry : node) {
      const int line = entry.first.Mark().line + 1;
      if (!entry.first.IsScalar()) fail(Exit::bad_data, "{}:{}: a key must be a word", origin_, line);
      const std::string key = entry.first.Scalar();
      const bool known = std::any_of(document.entries.begin(), document.entries.end(),
                                     [&](const auto& other) { return other.first == key; });
      if (known) fail(Exit::bad_data, "{}:{}: key '{}' appears twice; keep one", origin_, line, key);
      document.entries.emplace_back(key, read(entry.second));
      document.entries.back().second.line = line;
    }
  }

  const std::string& origin_;
  int values_ = 0;
};

void emit(YAML::Emitter& out, const Document& document) {
  switch (document.kind) {
    case Document::Kind::null: out << YAML::Null; break;
    case Document::Kind::scalar: out << document.scalar; break;
    case Document::Kind::list:
      out << YAML::BeginSeq;
      for (const Document& item : document.items) emit(out, item);
      out << YAML::EndSeq;
      break;
    case Document::Kind::map:
      out << YAML::BeginMap;
      for (const auto& [key, value] : document.entries) {
        out << YAML::Key << key << YAML::Value;
        emit(out, value);
      }
      out << YAML::EndMap;
      break;
  }
}

}  // namespace

Document parse_document(const std::string& text, const std::string& origin) {
  try {
    return Reader(origin).read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    fail(Exit::bad_data, "{}:{}: not YAML: {}", origin, error.mark.line + 1, error.msg);
  }
}

std::string to_text(const Document& document) {
  YAML::Emitter out;
  emit(out, document);
  return std::string(out.c_str()) + "\n";
}

}  // namespace orthant::model
