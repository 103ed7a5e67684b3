#pragma once

#include "orthant/microbatch/candidate.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace orthant::microbatch {

inline constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

/// All divisions of a kernel that no other one beats in both time and workspace: the least workspace first, the fastest
/// last. Dynamic programming over numbers of samples. Empty if no candidates within `limit_bytes` add up to the kernel.
std::vector<Division> pareto_front(const Table& table, std::int64_t limit_bytes = no_limit);

/// Workspace reuse: the fastest division within the kernel's own limit, or nothing if none fits.
std::optional<Division> within_limit(const Table& table, std::int64_t limit_bytes);

/// The fastest of a front within a limit, or null.
const Division* within_limit(std::span<const Division> front, std::int64_t limit_bytes);

/// Workspace division: for each kernel the index into its front, so that all workspaces together stay within
/// `total_bytes` and the sum of times is least. An integer program. Nothing if even the least workspaces are too much.
std::optional<std::vector<std::size_t>> within_total(std::span<const std::vector<Division>> fronts,
                                                     std::int64_t total_bytes);

}  // namespace orthant::microbatch
