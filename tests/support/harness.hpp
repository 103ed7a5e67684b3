#pragma once

#include "orthant/kernels/primitive.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace orthant::test {

/// A task with the choices its arguments leave open.
struct Case {
  model::Task task;
  std::vector<int> nulls;                   ///< arguments that are null
  std::vector<std::pair<int, int>> shared;  ///< {i, j}: argument i lies in the memory of argument j
};

/// All implementations to try with so many threads.
using Make = std::function<std::vector<std::unique_ptr<kernels::Primitive>>(int threads)>;
/// What make_primitive chooses.
Make chosen(const model::Task& task);

/// Nothing.
inline std::vector<std::unique_ptr<kernels::Primitive>> none(int) { return {}; }

/// Runs every implementation with 1, 2 and 3 threads on small whole numbers and on reals, and compares with the
/// reference: results exact on whole numbers where they can be, else within the tolerance; nothing written outside
/// the results; the same bits in a second run. Those of `fast` need not be exact, and may have five times the error.
/// Returns what is wrong, "" if nothing.
std::string check(const Case& one, const Make& make, const Make& fast = none);
inline std::string check(const Case& one) { return check(one, chosen(one.task)); }

}  // namespace orthant::test
