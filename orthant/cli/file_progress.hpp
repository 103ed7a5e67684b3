#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace orthant::cli {

/// Files or samples done of a long job: one line on stderr with the rate and the time left, in place on a terminal,
/// every few seconds elsewhere; nothing for short jobs.
class FileProgress {
 public:
  explicit FileProgress(std::string what, std::string unit = "files");
  FileProgress(const FileProgress&) = delete;
  FileProgress& operator=(const FileProgress&) = delete;
  ~FileProgress();

  void update(std::int64_t done, std::int64_t files);
  /// For jobs whose rate so far does not predict the time that is left.
  void update(std::int64_t done, std::int64_t files, double seconds_left);

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool is_due() const;
  void show(const std::string& text);

  std::string what_, unit_;
  bool terminal_, shown_ = false;
  Clock::time_point start_ = Clock::now(), last_shown_ = start_;
};

}  // namespace orthant::cli
