#include "orthant/data/io/set_directory.hpp"

#include "orthant/base/error.hpp"
#include "orthant/data/io/file.hpp"

#include <unistd.h>

#include <filesystem>

namespace orthant::data::io {
namespace {

namespace fs = std::filesystem;
using base::Exit;
using base::fail;

/// The nearest directory above that exists.
fs::path existing_part(fs::path path) {
  std::error_code error;
  path = fs::absolute(path, error).lexically_normal();
  while (!fs::exists(path, error) && path.has_parent_path() && path != path.parent_path()) path = path.parent_path();
  return path;
}

bool is_of_set(const fs::path& file, const std::string& prefix) {
  const std::string name = file.filename().string();
  return name.starts_with(prefix) && (name.ends_with(".h5") || name.ends_with(".h5.part"));
}

double gibibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

/// Calls visit(path) for each entry.
template <class Visit>
void for_each_entry(const std::string& path, Visit visit) {
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    visit(entry->path());
  if (error) fail(Exit::io, "cannot read the directory '{}': {}", path, error.message());
}

}  // namespace

void check_writable(const std::string& path) {
  const fs::path base = existing_part(path);
  if (!fs::is_directory(base))
    fail(Exit::io, "cannot make the directory '{}': '{}' is a file; choose another name", path, base.string());
  if (::access(base.c_str(), W_OK | X_OK) != 0)
    fail(Exit::io, "cannot write to '{}': no permission for '{}'; choose another directory", path, base.string());
}

void check_directory(const SetDirectory& directory) {
  check_writable(directory.path);
  if (fs::exists(directory.path) && !directory.overwrite) {
    for_each_entry(directory.path, [&](const fs::path& entry) {
      fail(Exit::io, "'{}' is not empty: it holds '{}'; choose another directory, or give --overwrite", directory.path,
           entry.filename().string());
    });
  }
  std::error_code error;
  const fs::space_info space = fs::space(existing_part(directory.path), error);
  const bool has_size = !error && space.capacity > 0;
  if (has_size && static_cast<std::int64_t>(space.available) < directory.bytes) {
    fail(Exit::io, "the files need {:.2f} GiB but '{}' has {:.2f} GiB left; make fewer or smaller samples",
         gibibytes(directory.bytes), directory.path, gibibytes(static_cast<std::int64_t>(space.available)));
  }
}

void make_directory(const SetDirectory& directory) {
  check_directory(directory);
  make_directories(directory.path);
  for_each_entry(directory.path, [&](const fs::path& entry) {
    std::error_code refused;
    if (is_of_set(entry, directory.prefix)) fs::remove(entry, refused);
    if (refused) fail(Exit::io, "cannot remove '{}': {}", entry.string(), refused.message());
  });
}

}  // namespace orthant::data::io
