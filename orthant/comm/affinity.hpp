#pragma once

#include <span>
#include <string>
#include <vector>

namespace orthant::comm {

/// The numbers of the hardware threads that this process may run on, in ascending order.
std::vector<int> allowed_processors();

/// The same, grouped by core.
std::vector<std::vector<int>> allowed_cores();

/// From now on this thread, and those that it starts, run on these hardware threads only.
void bind_to(std::span<const int> processors);

/// "0-3,8": runs of consecutive numbers.
std::string ranges_text(std::span<const int> numbers);

}  // namespace orthant::comm
