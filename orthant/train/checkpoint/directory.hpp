#pragma once

#include "orthant/train/checkpoint/manifest.hpp"

#include <string>
#include <vector>

namespace orthant::train::checkpoint {

/// A checkpoint that was skipped, and why.
struct Skipped {
  std::string path, reason;
};

/// The directory "checkpoints" of a run. A checkpoint is a directory "step-120" in it, which has this name only once it
/// is complete; before, it is "step-120.tmp".
class Directory {
 public:
  explicit Directory(const std::string& run_directory) : path_(run_directory + "/checkpoints") {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string of(std::int64_t step) const;
  [[nodiscard]] std::string unfinished(std::int64_t step) const { return of(step) + ".tmp"; }
  /// The steps of all checkpoints, the newest first.
  [[nodiscard]] std::vector<std::int64_t> steps() const;
  /// What was not finished, or was about to be removed.
  [[nodiscard]] std::vector<std::string> remains() const;

  /// Any rank may call it: makes the directory in which files of a checkpoint are written.
  void begin(std::int64_t step) const;
  /// Writes the manifest, brings everything to the disk and gives the directory its name.
  void commit(const Manifest& manifest) const;
  /// Reads and checks the manifest of a step, but no other file than for its size.
  [[nodiscard]] Manifest read(std::int64_t step) const;
  /// Removes all checkpoints but the newest `keep`, which must be good.
  void keep(std::int64_t keep) const;
  /// Removes what remains().
  void clean() const;
  void remove_unfinished(std::int64_t step) const;
  /// Renames a checkpoint that cannot be used to "step-120.damaged", so that its place is free.
  void set_aside(std::int64_t step) const;

 private:
  std::string path_;
};

/// Throws Error with the path if what was renamed or made in a directory cannot be brought to the disk.
void sync_directory(const std::string& path);

}  // namespace orthant::train::checkpoint
