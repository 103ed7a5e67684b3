#pragma once

#include "orthant/wrapper/kernel.hpp"

#include <mutex>
#include <vector>

namespace orthant::wrapper {

/// One total of workspace for all kernels: whenever a kernel's front becomes known, the total is divided anew.
class Budget {
 public:
  explicit Budget(std::int64_t total_bytes) : total_bytes_(total_bytes) {}
  void add(Kernel& kernel);

 private:
  std::int64_t total_bytes_;
  std::mutex mutex_;
  std::vector<Kernel*> kernels_;
  std::vector<std::vector<microbatch::Division>> fronts_;
};

}  // namespace orthant::wrapper
