#pragma once

#include <cstdint>
#include <string>

namespace orthant::cli {

/// Numbers for people: "9,437,636", "1.50 GiB", "55.55 GFLOP", "12.3 ms", "57.1 %".
std::string with_commas(std::int64_t number);
std::string bytes_text(std::int64_t bytes);
std::string flops_text(std::int64_t flops);
std::string seconds_text(double seconds);
std::string percent_text(double share);

}  // namespace orthant::cli
