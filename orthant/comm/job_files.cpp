#include "orthant/comm/job_files.hpp"

#include "orthant/base/format.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace orthant::comm {
namespace {

namespace fs = std::filesystem;

/// Calls visit(path) for each entry of a directory whose name begins so. What belongs to others is left alone.
template <class Visit>
void for_each_named(const std::string& folder, const std::string& prefix, Visit visit) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(prefix)) visit(entry->path());
}

std::string shared_memory_directory() {
  const char* folder = std::getenv("OMPI_MCA_btl_vader_backing_directory");
  return folder != nullptr && *folder != '\0' ? folder : "/dev/shm";
}

}  // namespace

std::string temporary_directory() {
  for (const char* name : {"TMPDIR", "TEMP", "TMP"})
    if (const char* folder = std::getenv(name); folder != nullptr && *folder != '\0') return folder;
  return "/tmp";
}

void remove_job_files(pid_t mpirun, const std::string& job) {
  std::error_code ignored;
  for_each_named(temporary_directory(), "ompi.", [&](const fs::path& path) {
    if (!fs::is_directory(fs::symlink_status(path, ignored))) return;
    fs::remove_all(path / fmt::format("pid.{}", mpirun), ignored);
    fs::remove(path, ignored);  // refused while other jobs have files there
  });
  unsigned number = 0;
  const auto [end, error] = std::from_chars(job.data(), job.data() + job.size(), number);
  if (error != std::errc() || end != job.data() + job.size()) return;
  const std::string middle = fmt::format(".{}.{:x}.", getuid(), number);
  for_each_named(shared_memory_directory(), "vader_segment.", [&](const fs::path& path) {
    if (path.filename().string().find(middle) != std::string::npos) fs::remove(path, ignored);
  });
}

}  // namespace orthant::comm
