#include "orthant/cli/make_progress.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/train/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace orthant::cli {
namespace {

constexpr std::chrono::milliseconds terminal_pause{100};
constexpr std::chrono::milliseconds file_pause{5000};

}  // namespace

MakeProgress::MakeProgress(comm::Comm& comm, std::string what, std::int64_t samples, std::int64_t steps_per_sample)
    : comm_(comm),
      what_(std::move(what)),
      samples_(samples),
      steps_per_sample_(steps_per_sample),
      terminal_(isatty(STDERR_FILENO) != 0) {}

MakeProgress::~MakeProgress() {
  if (terminal_ && shown_) fmt::print(stderr, "\n");
}

void MakeProgress::step(std::int64_t samples) {
  done_ += samples;
  if (comm::max(comm_, stop_.asked() ? 1 : 0) != 0) {
    throw comm::CollectiveError(base::Exit::stopped,
                                fmt::format("stopped by a signal after {} of {} {}s; those are complete",
                                            done_ / steps_per_sample_, samples_, what_));
  }
  if (comm_.rank() == 0) show();
}

void MakeProgress::show() {
  const Clock::time_point now = Clock::now();
  const bool due = now - last_shown_ >= (terminal_ ? terminal_pause : file_pause);
  const std::int64_t steps = samples_ * steps_per_sample_;
  if (!due && done_ != steps) return;
  last_shown_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double left = seconds / static_cast<double>(done_) * static_cast<double>(steps - done_);
  const std::int64_t sample = done_ == steps ? samples_ : done_ / steps_per_sample_ + 1;
  const std::string text =
      fmt::format("{} {}/{}  {:.0f} %  {} left", what_, sample, samples_,
                  100.0 * static_cast<double>(done_) / static_cast<double>(steps), train::clock_text(left));
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}", text);
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

}  // namespace orthant::cli
