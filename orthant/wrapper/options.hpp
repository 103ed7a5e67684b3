#pragma once

#include "orthant/microbatch/candidate.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace orthant::wrapper {

/// What the environment of the wrapped program says.
struct Options {
  std::int64_t limit_bytes = std::int64_t{64} << 20;             ///< ORTHANT_WORKSPACE_LIMIT, of every kernel
  std::optional<std::int64_t> total_bytes;                       ///< ORTHANT_TOTAL_WORKSPACE, of all kernels together
  microbatch::Policy policy = microbatch::Policy::power_of_two;  ///< ORTHANT_BATCH_POLICY
  bool fast = false;                                             ///< ORTHANT_ERROR: `fast`, or not
  bool summary = false;                                          ///< ORTHANT_SUMMARY
};

/// The value of an environment variable, or null.
using Environment = std::function<const char*(const char* name)>;

/// Throws Error naming the variable whose value makes no sense.
Options read_options(const Environment& environment);

/// "64MiB", "1.5 GiB", "1000000": nothing if it is no number of bytes.
std::optional<std::int64_t> bytes_from(const std::string& text);

}  // namespace orthant::wrapper
