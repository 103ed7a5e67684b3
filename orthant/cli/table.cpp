#include "orthant/cli/table.hpp"

#include "orthant/base/format.hpp"

#include <algorithm>
#include <numeric>

namespace orthant::cli {
namespace {

/// Characters on the screen: bytes that do not continue a UTF-8 sequence.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(const std::string& text, std::size_t columns, Table::Align align) {
  const std::string space(columns - std::min(columns, width(text)), ' ');
  return align == Table::Align::left ? text + space : space + text;
}

void append_row(std::string& out, const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                const std::vector<Table::Column>& columns) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) line += "  ";
    line += padded(i < cells.size() ? cells[i] : std::string(), widths[i], columns[i].align);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (const Column& column : columns_) {
    widths.push_back(width(column.title));
    titles.push_back(column.title);
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < std::min(row.size(), widths.size()); ++i)
      widths[i] = std::max(widths[i], width(row[i]));
  }
  const std::size_t total = std::accumulate(widths.begin(), widths.end(), 2 * (widths.size() - 1));
  const std::string rule = std::string(total, '-') + '\n';

  std::string out;
  append_row(out, titles, widths, columns_);
  out += rule;
  for (const auto& row : rows_) {
    if (row.empty()) {
      out += rule;
    } else {
      append_row(out, row, widths, columns_);
    }
  }
  return out;
}

}  // namespace orthant::cli
