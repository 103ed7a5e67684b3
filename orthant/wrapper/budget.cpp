#include "orthant/wrapper/budget.hpp"

namespace orthant::wrapper {

void Budget::add(Kernel& kernel) {
  const std::lock_guard lock(mutex_);
  kernels_.push_back(&kernel);
  fronts_.push_back(kernel.front());
  // Where even the least workspaces are too much together, kernels share the memory of the largest of them.
  const auto chosen =
      microbatch::within_total(fronts_, total_bytes_).value_or(std::vector<std::size_t>(fronts_.size(), 0));
  for (std::size_t i = 0; i < kernels_.size(); ++i) kernels_[i]->assign(fronts_[i][chosen[i]]);
}

}  // namespace orthant::wrapper
