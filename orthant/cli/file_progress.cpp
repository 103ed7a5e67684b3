#include "orthant/cli/file_progress.hpp"

#include "orthant/base/format.hpp"
#include "orthant/train/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace orthant::cli {
namespace {

constexpr std::chrono::milliseconds terminal_pause{200};
constexpr std::chrono::milliseconds file_pause{5000};

}  // namespace

FileProgress::FileProgress(std::string what, std::string unit)
    : what_(std::move(what)), unit_(std::move(unit)), terminal_(isatty(STDERR_FILENO) != 0) {}

FileProgress::~FileProgress() {
  if (terminal_ && shown_) fmt::print(stderr, "\r\033[K");
}

void FileProgress::update(std::int64_t done, std::int64_t files) {
  if (!is_due()) return;
  const double rate = static_cast<double>(done) / std::chrono::duration<double>(Clock::now() - start_).count();
  show(fmt::format("{} {} of {} {}  {:.3g} {}/s  {} left", what_, done, files, unit_, rate, unit_,
                   train::clock_text(static_cast<double>(files - done) / rate)));
}

void FileProgress::update(std::int64_t done, std::int64_t files, double seconds_left) {
  if (!is_due()) return;
  show(fmt::format("{} {} of {} {}  {} left", what_, done, files, unit_, train::clock_text(seconds_left)));
}

bool FileProgress::is_due() const { return Clock::now() - last_shown_ >= (terminal_ ? terminal_pause : file_pause); }

void FileProgress::show(const std::string& text) {
  last_shown_ = Clock::now();
  shown_ = true;
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r\033[K" : "", text, terminal_ ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace orthant::cli
