#pragma once

#include <string>
#include <vector>

namespace orthant::cli {

/// Rows of text under a header, printed with aligned columns.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One cell per column; missing cells at the end are empty.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// A line between the rows so far and those that follow.
  void add_line() { rows_.emplace_back(); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace orthant::cli
