#pragma once

#include "orthant/data/io/directory_lock.hpp"
#include "orthant/model/graph.hpp"

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace orthant::train {

/// A text file that grows line by line and is readable while the run goes on.
class LineFile {
 public:
  /// A file that is new, or one that is gone on with.
  enum class Mode { replace, append };
  explicit LineFile(const std::string& path, Mode mode = Mode::replace);
  void write(const std::string& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// Keeps the rows of a table whose first field is at most `step`, for a run that goes on after it, and returns them,
/// header included. A last row that was not finished is dropped.
std::vector<std::string> cut_table(const std::string& path, std::int64_t step);

/// Throws Error if the directory already holds a run and `overwrite` is false, or if it is not writable. An empty
/// `wanted` means a new directory under runs/. Changes nothing.
void check_run_directory(const std::string& wanted, bool overwrite);

/// The directory of one run: run.yaml, plan.json, log.txt, metrics.csv, weights.safetensors. Locked as long as this
/// lives.
class RunDirectory {
 public:
  /// Checks it as above. `wanted` empty: the first free runs/<name>-<number>.
  RunDirectory(const std::string& wanted, const std::string& name, bool overwrite);
  /// The directory of a run that goes on.
  explicit RunDirectory(std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::unique_ptr<data::io::DirectoryLock> lock_;
};

/// The losses and rates of a run, one line per step, with every digit.
class Metrics {
 public:
  /// `mode`: a run that goes on has a table already.
  Metrics(const std::string& path, const model::Loss& loss, LineFile::Mode mode = LineFile::Mode::replace);
  struct Row {
    std::int64_t step = 0, epoch = 0;
    double learning_rate = 0;
    double seconds = 0;              ///< of this step, loading included
    std::span<const double> losses;  ///< one per term, then their weighted sum
  };
  void write(const Row& row);

 private:
  LineFile file_;
};

/// The newest runs/<name>-<number>; empty if there is none.
std::string newest_run(const std::string& name);

/// A line with the date for log.txt.
std::string log_line(const std::string& text);

}  // namespace orthant::train
