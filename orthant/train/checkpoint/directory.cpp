#include "orthant/train/checkpoint/directory.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/train/checkpoint/hashed_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>

namespace orthant::train::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::Exit;
using base::fail;

constexpr const char* manifest_name = "manifest.json";
constexpr std::int64_t most_manifest_bytes = std::int64_t{1} << 30;
constexpr std::string_view prefix = "step-";

/// The step of "step-120".
std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* begin = name.data() + prefix.size();
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(begin, end, step);
  if (error != std::errc() || rest != end || step < 0) return std::nullopt;
  return step;
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    fail(Exit::io, "cannot read the directory '{}': {}", path, error.message());
  return names;
}

void rename_directory(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    fail(Exit::io, "cannot rename '{}' to '{}': {}", from, to, std::strerror(errno));
}

void remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail(Exit::io, "cannot remove '{}': {}", path, error.message());
}

void make_directory_at(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
    fail(Exit::io, "cannot make the directory '{}': {}", path, std::strerror(errno));
}

}  // namespace

void sync_directory(const std::string& path) {
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int result = -1;
  while (directory >= 0 && (result = ::fsync(directory)) != 0 && errno == EINTR) continue;
  const int reason = errno;
  if (directory >= 0) ::close(directory);
  if (result != 0) fail(Exit::io, "cannot bring the directory '{}' to the disk: {}", path, std::strerror(reason));
}

std::string Directory::of(std::int64_t step) const { return fmt::format("{}/{}{}", path_, prefix, step); }

std::vector<std::int64_t> Directory::steps() const {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(path_))
    if (const auto step = step_of(name)) steps.push_back(*step);
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

std::vector<std::string> Directory::remains() const {
  std::vector<std::string> found;
  for (const std::string& name : names_in(path_)) {
    const std::size_t dot = name.rfind('.');
    const std::string ending = dot == std::string::npos ? "" : name.substr(dot);
    if ((ending == ".tmp" || ending == ".removed") && step_of(name.substr(0, dot))) found.push_back(path_ + "/" + name);
  }
  return found;
}

void Directory::begin(std::int64_t step) const {
  make_directory_at(path_);
  make_directory_at(unfinished(step));
}

void Directory::commit(const Manifest& manifest) const {
  const std::int64_t step = manifest.state.step;
  const std::string text = to_json(manifest);
  HashedFile file(unfinished(step), manifest_name);
  file.write(std::as_bytes(std::span(text)));
  file.finish();
  sync_directory(unfinished(step));
  rename_directory(unfinished(step), of(step));
  sync_directory(path_);
}

Manifest Directory::read(std::int64_t step) const {
  const std::string path = of(step) + "/" + manifest_name;
  Manifest manifest = from_json(data::io::read_text(path, most_manifest_bytes), "'" + path + "'");
  if (manifest.state.step != step)
    fail(Exit::bad_data, "'{}' is the manifest of step {}; it does not belong here", path, manifest.state.step);
  for (const File& file : manifest.files) {
    const data::io::InputFile input(of(step) + "/" + file.name);
    if (input.bytes() != file.bytes)
      fail(Exit::bad_data, "'{}' has {} bytes where {} are expected", input.path(), input.bytes(), file.bytes);
  }
  return manifest;
}

void Directory::keep(std::int64_t keep) const {
  const std::vector<std::int64_t> all = steps();
  for (std::size_t i = static_cast<std::size_t>(keep); i < all.size(); ++i) {
    rename_directory(of(all[i]), of(all[i]) + ".removed");
    remove_tree(of(all[i]) + ".removed");
  }
}

void Directory::clean() const {
  for (const std::string& path : remains()) remove_tree(path);
}

void Directory::remove_unfinished(std::int64_t step) const { remove_tree(unfinished(step)); }

void Directory::set_aside(std::int64_t step) const {
  const std::string aside = of(step) + ".damaged";
  remove_tree(aside);
  rename_directory(of(step), aside);
}

}  // namespace orthant::train::checkpoint
