#pragma once

#include "orthant/model/task.hpp"

#include <span>

namespace orthant::test {

/// |actual - expected| / max(|expected|, floor) in the Euclidean norm; infinite if a number is not finite.
double relative_error(std::span<const double> actual, std::span<const double> expected, double floor = 0);

/// The largest relative_error a kernel may have on random reals: k * eps * sqrt(n), with n the number of
/// items that are summed into one result and k by the kind of task.
double tolerance(const model::Task& task);

/// True if every result is a whole multiple of a power of two on small whole numbers, so that floats are exact
/// in whatever order they are summed.
bool is_exact_on_integers(const model::Task& task);

/// Engine in float against the same schedule in double: outputs, losses, gradients.
inline constexpr double network_tolerance = 1e-5;
/// Gradients in double against central differences in double.
inline constexpr double finite_difference_tolerance = 1e-6;

}  // namespace orthant::test
