#pragma once

#include "orthant/comm/comm.hpp"

#include <span>

namespace orthant::comm {

/// Collective. Replaces the numbers of all ranks by their sums, which are taken in the order of the ranks, so that bits
/// depend neither on the MPI library nor on timing. A rank waits for all ranks before it: this is for reports.
void sum_in_order(Comm& comm, std::span<double> numbers);

}  // namespace orthant::comm
