#include "orthant/train/stop_time.hpp"

#include "orthant/base/error.hpp"

#include <cstdlib>
#include <ctime>

namespace orthant::train {
namespace {

using std::chrono::system_clock;

/// For what is not a step nor a checkpoint, and clocks that differ.
constexpr double margin_seconds = 2;

std::optional<WallTime> parse_as(const std::string& text, const char* format, std::tm parts) {
  const char* end = strptime(text.c_str(), format, &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  parts.tm_isdst = -1;
  const std::time_t time = std::mktime(&parts);
  if (time == -1) return std::nullopt;
  return system_clock::from_time_t(time);
}

}  // namespace

WallTime parse_stop_time(const std::string& text, WallTime now) {
  const std::time_t seconds = system_clock::to_time_t(now);
  std::tm today{};
  localtime_r(&seconds, &today);
  today.tm_sec = 0;
  for (const char* format : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"})
    if (const auto time = parse_as(text, format, std::tm{})) return *time;
  for (const char* format : {"%H:%M:%S", "%H:%M"}) {
    std::optional<WallTime> time = parse_as(text, format, today);
    if (!time) continue;
    if (*time > now) return *time;
    ++today.tm_mday;  // mktime() knows how long months are
    return parse_as(text, format, today).value_or(*time + std::chrono::hours(24));
  }
  base::fail(base::Exit::usage, "--stop-at: '{}' is no time; write 2026-11-30T08:00 or 08:00", text);
}

std::optional<WallTime> job_end_from_environment() {
  const char* text = std::getenv("SLURM_JOB_END_TIME");
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const long long seconds = std::strtoll(text, &end, 10);
  if (end == text || *end != '\0' || seconds <= 0) return std::nullopt;
  return system_clock::from_time_t(static_cast<std::time_t>(seconds));
}

bool must_stop(WallTime end, WallTime now, const Pace& pace) {
  const double left = std::chrono::duration<double>(end - now).count();
  return left < pace.step_seconds + 2 * pace.checkpoint_seconds + margin_seconds;
}

}  // namespace orthant::train
