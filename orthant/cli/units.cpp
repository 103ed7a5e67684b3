#include "orthant/cli/units.hpp"

#include "orthant/base/format.hpp"

#include <array>
#include <cmath>

namespace orthant::cli {

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t digits_from = number < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > digits_from + 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

std::string bytes_text(std::int64_t bytes) {
  static constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, units.at(unit));
}

std::string flops_text(std::int64_t flops) {
  static constexpr std::array<const char*, 6> units{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
  auto value = static_cast<double>(flops);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} FLOP", flops) : fmt::format("{:.2f} {}", value, units.at(unit));
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (seconds < 7200) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", share * 100); }

}  // namespace orthant::cli
