#pragma once

#include <string>

namespace orthant::data::io {

/// Keeps other programs of ours out of a directory as long as it lives: a lock on the file `.lock` there, which names
/// host and process. The system gives it back when the process ends, however that happens.
class DirectoryLock {
 public:
  /// Throws Error (75) with host and process of who has it.
  explicit DirectoryLock(const std::string& directory);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// Throws Error (75) if somebody has the lock of a directory. Changes nothing.
void check_not_locked(const std::string& directory);

}  // namespace orthant::data::io
