#pragma once

#include <string>
#include <utility>
#include <vector>

namespace orthant::model {

/// A YAML value that knows its line. Keys of a map are unique, in the order of the file.
struct Document {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  int line = 0;  ///< counts from 1; 0 if it came from the command line
  std::string scalar;
  std::vector<Document> items;  ///< list
  struct Entry;
  std::vector<Entry> entries;  ///< map
};

/// A key and its value.
struct Document::Entry {
  Entry(std::string key, Document value) : first(std::move(key)), second(std::move(value)) {}
  std::string first;
  Document second;
};

/// Reads YAML text; `origin` names it in messages ("run.yaml:7: ..."). Throws Error where it is malformed,
/// has a key twice, or is larger than a hand-written file could be.
Document parse_document(const std::string& text, const std::string& origin);

/// YAML text that parse_document reads back.
std::string to_text(const Document& document);

}  // namespace orthant::model
