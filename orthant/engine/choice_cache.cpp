#include "orthant/engine/choice_cache.hpp"

#include "orthant/base/json.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace orthant::engine {
namespace {

using base::Json;

constexpr const char* format = "orthant-kernels";
constexpr int format_version = 2;

/// Held by one process at a time. On file systems without locks it does nothing.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : descriptor_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    if (descriptor_ >= 0) flock(descriptor_, LOCK_EX);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }

 private:
  int descriptor_;
};

/// The file's content, or an empty document where it is missing, damaged or of another version.
Json read_document(const std::string& path) {
  const Json empty{{"format", format}, {"version", format_version}, {"machines", Json::object()}};
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  const Json read = Json::parse(text.str(), nullptr, false);
  const bool known = read.is_object() && read.value("format", Json()) == format &&
                     read.value("version", Json()) == format_version && read.value("machines", Json()).is_object();
  return known ? read : empty;
}

Json to_json(const Choice& choice) {
  return {{"algorithm", model::name_of(choice.algorithm)},
          {"seconds", choice.seconds},
          {"scratch_bytes", choice.scratch_bytes}};
}

std::optional<Choice> choice_from(const Json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const Json name = entry.value("algorithm", Json());
  const Json seconds = entry.value("seconds", Json());
  const Json scratch = entry.value("scratch_bytes", Json());
  if (!name.is_string() || !seconds.is_number() || !scratch.is_number_integer()) return std::nullopt;
  const auto algorithm = model::algorithm_named(name.get<std::string>());
  if (!algorithm) return std::nullopt;
  return Choice{*algorithm, seconds.get<double>(), scratch.get<std::int64_t>()};
}

}  // namespace

Choices ChoiceCache::load() const {
  Choices choices;
  if (path_.empty()) return choices;
  const Json document = read_document(path_);
  const Json entries = document["machines"].value(machine_, Json::object());
  if (!entries.is_object()) return choices;
  for (const auto& [task, entry] : entries.items()) {
    if (const auto choice = choice_from(entry)) choices.emplace(task, *choice);
  }
  return choices;
}

bool ChoiceCache::store(const Choices& choices) const {
  if (path_.empty() || choices.empty()) return true;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  const FileLock lock(path_ + ".lock");
  Json document = read_document(path_);
  Json& entries = document["machines"][machine_];
  if (!entries.is_object()) entries = Json::object();
  for (const auto& [task, choice] : choices) entries[task] = to_json(choice);
  const std::string temporary = path_ + "." + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << document.dump(1) << "\n";
  file.close();
  if (!file) {
    std::filesystem::remove(temporary, error);
    return false;
  }
  std::filesystem::rename(temporary, path_, error);
  return !error;
}

}  // namespace orthant::engine
