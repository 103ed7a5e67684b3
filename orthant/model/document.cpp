#include "orthant/model/document.hpp"

#include "orthant/base/error.hpp"
#include "orthant/model/printable.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <sstream>
#include <unordered_set>

namespace orthant::model {
namespace {

using base::Exit;
using base::fail;

constexpr std::size_t most_bytes = std::size_t{1} << 20;
constexpr std::size_t most_nesting = 32;

/// Builds the tree from the parser's events. Anchors are refused: they can make a short file expand without end.
class Reader : public YAML::EventHandler {
 public:
  explicit Reader(const std::string& origin) : origin_(origin) {}

  Document take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second document; put it into a file of its own");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { value(mark, "", anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "an alias (*name); write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const bool is_key = expects_key();
    Document& document = value(mark, tag, anchor, &text);
    if (is_key) return;
    document.kind = Document::Kind::scalar;
    document.scalar = text;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Document::Kind::list);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Document::Kind::map);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  /// A list or map whose end has not come yet.
  struct Open {
    Document* document;
    bool key_read = false;
    std::unordered_set<std::string> keys;
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, const char* what) const {
    fail(Exit::bad_data, "{}:{}: {}", origin_, mark.line + 1, what);
  }

  [[nodiscard]] bool expects_key() const {
    return !open_.empty() && open_.back().document->kind == Document::Kind::map && !open_.back().key_read;
  }

  /// The place for a value that begins here; for a key, the entry that its value will fill.
  Document& value(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string* text = nullptr) {
    if (anchor != YAML::NullAnchor) refuse(mark, "an anchor (&name); write the value out where it is used");
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "a tag (!name); plain values are enough");
    if (expects_key()) return key(mark, text);
    if (open_.empty()) {
      root_.line = mark.line + 1;
      return root_;
    }
    Document& parent = *open_.back().document;
    if (parent.kind == Document::Kind::map) {
      open_.back().key_read = false;
      return parent.entries.back().second;
    }
    parent.items.emplace_back().line = mark.line + 1;
    return parent.items.back();
  }

  Document& key(const YAML::Mark& mark, const std::string* text) {
    if (text == nullptr) refuse(mark, "a key that is no word");
    Open& map = open_.back();
    if (!map.keys.insert(*text).second)
      fail(Exit::bad_data, "{}:{}: key '{}' appears twice; keep one", origin_, mark.line + 1, printable(*text));
    map.key_read = true;
    map.document->entries.emplace_back(*text, Document{}).second.line = mark.line + 1;
    return map.document->entries.back().second;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Document::Kind kind) {
    if (open_.size() == most_nesting) refuse(mark, "lists and maps are nested too deeply");
    Document& document = value(mark, tag, anchor);
    document.kind = kind;
    open_.push_back({.document = &document, .key_read = false, .keys = {}});
  }

  const std::string& origin_;
  Document root_{.kind = Document::Kind::null, .line = 1, .scalar = {}, .items = {}, .entries = {}};
  std::vector<Open> open_;
  int documents_ = 0;
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
  if (text.size() > most_bytes)
    fail(Exit::bad_data, "{}: {} bytes; at most {} are read as YAML, is this the right file?", origin, text.size(),
         most_bytes);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Reader reader(origin);
    while (parser.HandleNextDocument(reader)) {
    }
    return reader.take();
  } catch (const YAML::Exception& error) {
    fail(Exit::bad_data, "{}:{}: not YAML: {}", origin, error.mark.line + 1, printable(error.msg, 200));
  }
}

std::string to_text(const Document& document) {
  YAML::Emitter out;
  emit(out, document);
  return std::string(out.c_str()) + "\n";
}

}  // namespace orthant::model
