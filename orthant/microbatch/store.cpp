#include "orthant/microbatch/store.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/base/new_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

namespace orthant::microbatch {
namespace {

using base::Json;

constexpr const char* format = "orthant-kernels";
constexpr int format_version = 3;

/// Some thousand networks; what is larger is no cache of ours.
constexpr std::int64_t most_bytes = 16 << 20;
constexpr std::chrono::milliseconds patience{2'000}, pause{20};

/// Held by one process at a time, if it can be had soon. On file systems without locks it does nothing.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : descriptor_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0600)) {
    struct stat status {};
    if (descriptor_ < 0 || fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return;
    // Others hold it for milliseconds. One that is stopped meanwhile must not stop this run.
    for (auto waited = pause; flock(descriptor_, LOCK_EX | LOCK_NB) != 0; waited += pause) {
      is_taken_ = errno == EWOULDBLOCK && waited >= patience;
      if ((errno != EWOULDBLOCK && errno != EINTR) || is_taken_) return;
      std::this_thread::sleep_for(pause);
    }
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  /// Somebody else keeps it.
  [[nodiscard]] bool is_taken() const { return is_taken_; }

 private:
  int descriptor_;
  bool is_taken_ = false;
};

/// The text as JSON; null where it is none.
Json parse(const std::string& text, const std::string& path) {
  try {
    return base::parse_json(text, path);
  } catch (const base::Error&) {
    return nullptr;
  }
}

bool is_ours(const Json& read) {
  return read.is_object() && read.value("format", Json()) == format &&
         read.value("version", Json()) == format_version && read.value("machines", Json()).is_object();
}

/// The file's content, or an empty document where it is missing, damaged or of another version.
Json read_document(const std::string& path) {
  const Json empty{{"format", format}, {"version", format_version}, {"machines", Json::object()}};
  const std::optional<std::string> text = base::read_if_regular(path, most_bytes);
  if (!text) return empty;
  const Json read = parse(*text, path);
  return is_ours(read) ? read : empty;
}

Json to_json(const std::vector<Measured>& list) {
  Json entries = Json::array();
  for (const Measured& one : list) {
    entries.push_back(
        {{"algorithm", one.algorithm}, {"seconds", one.seconds}, {"workspace_bytes", one.workspace_bytes}});
    if (one.error > 0) entries.back()["error"] = one.error;
  }
  return entries;
}

std::optional<Measured> measured_from(const Json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const Json name = entry.value("algorithm", Json());
  const Json seconds = entry.value("seconds", Json());
  const Json bytes = entry.value("workspace_bytes", Json());
  const Json error = entry.value("error", Json(0.0));
  if (!name.is_string() || !seconds.is_number() || !bytes.is_number_integer() || !error.is_number())
    return std::nullopt;
  const Measured measured{name.get<std::string>(), seconds.get<double>(), bytes.get<std::int64_t>(),
                          error.get<double>()};
  const bool makes_sense = measured.seconds >= 0 && measured.workspace_bytes >= 0 && measured.error >= 0;
  return makes_sense ? std::optional(measured) : std::nullopt;
}

/// Nothing if one of the entries is damaged: a table with gaps would be taken for a whole one.
std::optional<std::vector<Measured>> list_from(const Json& entries) {
  if (!entries.is_array() || entries.empty()) return std::nullopt;
  std::vector<Measured> list;
  for (const Json& entry : entries) {
    const auto measured = measured_from(entry);
    if (!measured) return std::nullopt;
    list.push_back(*measured);
  }
  return list;
}

bool write_new(const std::string& path, const std::string& text) {
  const int descriptor = base::open_new_file(path);
  std::size_t done = 0;
  while (descriptor >= 0 && done < text.size()) {
    const ssize_t put = write(descriptor, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    done += static_cast<std::size_t>(put);
  }
  return descriptor >= 0 && close(descriptor) == 0 && done == text.size();
}

}  // namespace

std::string Store::trouble() const {
  struct stat status {};
  if (path_.empty() || stat(path_.c_str(), &status) != 0) return "";
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  if (status.st_size > most_bytes) return fmt::format("it has {} bytes, more than {}", status.st_size, most_bytes);
  const std::optional<std::string> text = base::read_if_regular(path_, most_bytes);
  if (!text) return "it cannot be read";
  try {
    const Json read = base::parse_json(*text, "its content");
    return is_ours(read) ? "" : "it is not a file of measured kernels, or one of another version";
  } catch (const base::Error& error) {
    return error.what();
  }
}

Records Store::load() const {
  Records records;
  if (path_.empty()) return records;
  const Json document = read_document(path_);
  const Json entries = document["machines"].value(machine_, Json::object());
  if (!entries.is_object()) return records;
  for (const auto& [task, entry] : entries.items()) {
    if (auto list = list_from(entry)) records.emplace(task, std::move(*list));
  }
  return records;
}

bool Store::add(const Records& records) const {
  if (path_.empty() || records.empty()) return true;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  const FileLock lock(path_ + ".lock");
  struct stat status {};
  const bool is_other = lstat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode);
  if (lock.is_taken() || is_other) return false;
  Json document = read_document(path_);
  Json& entries = document["machines"][machine_];
  if (!entries.is_object()) entries = Json::object();
  for (const auto& [task, list] : records) entries[task] = to_json(list);
  const std::string temporary = path_ + "." + std::to_string(getpid());
  std::string text = document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  // What machines of long ago left must not make it larger and larger.
  if (static_cast<std::int64_t>(text.size()) > most_bytes) {
    document["machines"] = Json{{machine_, document["machines"][machine_]}};
    text = document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  if (write_new(temporary, text) && rename(temporary.c_str(), path_.c_str()) == 0) return true;
  unlink(temporary.c_str());
  return false;
}

std::string store_path() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string path = set("ORTHANT_CACHE"); !path.empty()) return path;
  if (const std::string folder = set("XDG_CACHE_HOME"); !folder.empty()) return folder + "/orthant/kernels.json";
  if (const std::string home = set("HOME"); !home.empty()) return home + "/.cache/orthant/kernels.json";
  return "";
}

}  // namespace orthant::microbatch
