#pragma once

#include <cstdint>
#include <optional>

namespace orthant::cli {

/// Counts calls of malloc and its kin, operator new included, by any thread and library while it lives.
class AllocationCount {
 public:
  AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;
  ~AllocationCount();
  /// Nothing under a sanitizer, which brings its own malloc.
  [[nodiscard]] std::optional<std::int64_t> calls() const;
};

}  // namespace orthant::cli
