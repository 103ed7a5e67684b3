#include "orthant/data/tools/set_check.hpp"

#include "orthant/base/format.hpp"
#include "orthant/data/formats/npy.hpp"
#include "orthant/data/io/crc32c.hpp"
#include "orthant/data/io/file.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

namespace orthant::data::tools {
namespace {

using base::Exit;

void add_problem(FileReport& report, const std::string& problem) {
  if (report.problems.empty()) report.code = Exit::bad_data;
  report.problems.push_back(problem);
}

const ArrayReport* find(const FileReport& report, const std::string& name) {
  const auto found = std::find_if(report.arrays.begin(), report.arrays.end(),
                                  [&](const ArrayReport& array) { return array.name == name; });
  return found == report.arrays.end() ? nullptr : &*found;
}

std::string name_of(const FileReport& report, const ArrayReport& array) {
  return array.name.empty() ? report.path : report.path + ":" + array.name;
}

void compare(FileReport& report, const FileReport& first) {
  for (const ArrayReport& wanted : first.arrays) {
    const ArrayReport* array = find(report, wanted.name);
    if (array == nullptr) {
      add_problem(report, fmt::format("'{}' has no key '{}', but '{}' has", report.path, wanted.name, first.path));
    } else if (array->extents != wanted.extents) {
      add_problem(report, fmt::format("'{}' has shape {}, but '{}' has {}", name_of(report, *array),
                                      formats::extents_text(array->extents), name_of(first, wanted),
                                      formats::extents_text(wanted.extents)));
    } else if (array->type != wanted.type) {
      add_problem(report, fmt::format("'{}' has numbers of {}, but '{}' of {}", name_of(report, *array), array->type,
                                      name_of(first, wanted), wanted.type));
    }
  }
}

void check_labels(FileReport& report, std::int64_t classes) {
  static const std::vector<std::string> names{"segmentation", "label", "labels"};
  for (const ArrayReport& array : report.arrays) {
    if (std::find(names.begin(), names.end(), array.name) == names.end() || !array.summary) continue;
    const NumberSummary& numbers = *array.summary;
    if (!array.integers)
      add_problem(report,
                  fmt::format("'{}' has {} numbers, but labels must be integers", name_of(report, array), array.type));
    if (numbers.least < 0 || (classes > 0 && numbers.most >= static_cast<double>(classes))) {
      add_problem(report, fmt::format("'{}' has labels from {} to {}, but classes are 0 to {}", name_of(report, array),
                                      numbers.least, numbers.most, classes > 0 ? std::to_string(classes - 1) : "any"));
    }
  }
}

std::string list_beside(const std::string& path) {
  return (std::filesystem::path(path).parent_path() / ".checksums").string();
}
std::string own_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::map<std::string, std::string> read_list(const std::string& path) {
  return parse_checksums(io::read_text(path), path);
}

std::string sum_of(const std::string& path) { return fmt::format("{:08x}", io::crc32c_of_file(path)); }

}  // namespace

std::map<std::string, std::string> parse_checksums(const std::string& list, const std::string& path) {
  std::map<std::string, std::string> sums;
  std::istringstream text(list);
  for (std::string line; std::getline(text, line);) {
    const std::size_t space = line.find("  ");
    if (space != 8)
      base::fail(Exit::bad_data, "'{}' has a line that is not a checksum and a name: '{}'", path, line.substr(0, 80));
    sums[line.substr(space + 2)] = line.substr(0, space);
  }
  return sums;
}

void check_set(std::vector<FileReport>& reports, const SetOptions& options) {
  const auto first =
      std::find_if(reports.begin(), reports.end(), [](const FileReport& r) { return !r.arrays.empty(); });
  for (FileReport& report : reports) {
    if (report.arrays.empty()) continue;
    if (&report != &*first) compare(report, *first);
    check_labels(report, options.classes);
  }
}

ChecksumLists::Comparison ChecksumLists::compare(const std::string& path) {
  const std::string list = list_beside(path);
  if (!std::filesystem::exists(list)) return {};
  if (!lists_.contains(list)) lists_[list] = read_list(list);
  const auto known = lists_[list].find(own_name(path));
  if (known == lists_[list].end()) return {.problem = fmt::format("'{}' has no checksum in '{}'", path, list)};
  const std::string sum = sum_of(path);
  if (sum == known->second) return {.compared = true};
  return {
      .compared = true,
      .problem = fmt::format("'{}' has checksum {}, but '{}' says {}: it has changed", path, sum, list, known->second)};
}

std::int64_t check_checksums(std::vector<FileReport>& reports) {
  ChecksumLists lists;
  std::int64_t compared = 0;
  for (FileReport& report : reports) {
    if (report.code == Exit::missing_input) continue;
    const ChecksumLists::Comparison comparison = lists.compare(report.path);
    compared += comparison.compared ? 1 : 0;
    if (!comparison.problem.empty()) add_problem(report, comparison.problem);
  }
  return compared;
}

void write_checksums(const std::vector<FileReport>& reports) {
  std::map<std::string, std::string> lists;
  for (const FileReport& report : reports)
    lists[list_beside(report.path)] += fmt::format("{}  {}\n", sum_of(report.path), own_name(report.path));
  for (const auto& [path, text] : lists) io::write_text(path, text);
}

}  // namespace orthant::data::tools
