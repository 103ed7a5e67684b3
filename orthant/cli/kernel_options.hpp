#pragma once

#include "orthant/cli/parallel.hpp"
#include "orthant/engine/choose.hpp"

#include <string>

namespace orthant::cli {

/// Throws Error(usage) if --algorithm has no such value.
void check_algorithm(const std::string& name);

/// How kernels are chosen as --algorithm says. Rank 0 tells the user what is measured.
engine::ChooseOptions kernel_options(const ParallelArguments& arguments, const comm::Comm& comm);

}  // namespace orthant::cli
