#include "orthant/data/io/file_list.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/data/io/file.hpp"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

namespace orthant::data::io {
namespace {

using base::Exit;
using base::fail;

std::vector<std::string> files_in(const std::string& directory, const std::vector<std::string>& endings) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const std::string path = at->path().string();
    const bool wanted = std::any_of(endings.begin(), endings.end(), [&](const auto& e) { return path.ends_with(e); });
    if (wanted) paths.push_back(path);
  }
  if (error) fail(Exit::io, "cannot list '{}': {}", directory, error.message());
  if (paths.empty())
    fail(Exit::missing_input, "the directory '{}' has no file that ends in {}", directory, fmt::join(endings, " or "));
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> lines_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::vector<std::string> paths;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) paths.push_back((folder / line).string());
  }
  if (paths.empty()) fail(Exit::bad_data, "'{}' names no files; write a path on each line", path);
  return paths;
}

}  // namespace

std::vector<std::string> matching_paths(const std::string& pattern) {
  if (pattern.find_first_of("*?") == std::string::npos) return {pattern};
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths;
  if (status == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (paths.empty()) fail(Exit::missing_input, "no file matches '{}'", pattern);
  return paths;
}

std::vector<std::string> list_files(const std::vector<std::string>& words, const std::vector<std::string>& endings) {
  std::vector<std::string> paths;
  for (const std::string& word : words) {
    std::error_code ignored;
    std::vector<std::string> some;
    if (std::filesystem::is_directory(word, ignored)) {
      some = files_in(word, endings);
    } else if (word.ends_with(".txt")) {
      some = lines_of(word);
    } else {
      some = matching_paths(word);
    }
    paths.insert(paths.end(), some.begin(), some.end());
  }
  if (paths.empty()) fail(Exit::bad_data, "the data has no files; name at least one");
  return paths;
}

}  // namespace orthant::data::io
