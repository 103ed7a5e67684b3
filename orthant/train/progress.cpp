#include "orthant/train/progress.hpp"

#include "orthant/base/format.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace orthant::train {
namespace {

constexpr std::chrono::milliseconds terminal_pause{100};
constexpr std::chrono::milliseconds file_pause{5000};

}  // namespace

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string progress_text(const ProgressState& state) {
  return fmt::format("step {}/{}  loss {:.5g}  {:.3g} samples/s  {} left", state.step, state.steps, state.loss,
                     state.samples_per_second, clock_text(state.seconds_left));
}

Progress::Progress(std::int64_t steps, std::int64_t mini_batch, std::int64_t done)
    : steps_(steps), mini_batch_(mini_batch), done_(done), terminal_(isatty(STDERR_FILENO) != 0) {}

double Progress::seconds_since_first() const { return std::chrono::duration<double>(now_ - first_done_).count(); }

double Progress::samples_per_second() const {
  const std::int64_t own = std::max<std::int64_t>(step_ - done_, 0);
  const double seconds = own > 1 ? seconds_since_first() : std::chrono::duration<double>(now_ - start_).count();
  const std::int64_t steps = own > 1 ? own - 1 : own;
  return seconds > 0 ? static_cast<double>(steps * mini_batch_) / seconds : 0;
}

void Progress::update(std::int64_t step, double loss) {
  now_ = Clock::now();
  if (step_ == 0) first_done_ = now_;
  step_ = step;
  const bool due = now_ - last_shown_ >= (terminal_ ? terminal_pause : file_pause);
  if (!due && step != done_ + 1 && step != steps_) return;
  last_shown_ = now_;
  shown_ = true;
  const double rate = samples_per_second();
  const double left = rate > 0 ? static_cast<double>((steps_ - step) * mini_batch_) / rate : 0;
  const std::string text =
      progress_text({.step = step, .steps = steps_, .loss = loss, .samples_per_second = rate, .seconds_left = left});
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}", text);
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

void Progress::note(const std::string& text) {
  fmt::print(stderr, "{}{}\n", terminal_ ? "\r\033[K" : "", text);
  std::fflush(stderr);
  shown_ = false;
}

void Progress::finish() {
  if (terminal_ && shown_) fmt::print(stderr, "\n");
  shown_ = false;
}

}  // namespace orthant::train
