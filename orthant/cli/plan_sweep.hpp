#pragma once

#include "orthant/cli/plan.hpp"

namespace orthant::cli {

/// Ranks in powers of two out of "ranks=1..2048". Throws Error (64).
std::vector<int> swept_ranks(const std::string& text);

/// Prices the named strategies, or the one that is asked for, for all these ranks: with the same mini-batch (strong
/// scaling), and with one that grows with the ranks (weak scaling). Prints tables or JSON, and writes the files that
/// are asked for.
void run_sweep(const PlanArguments& arguments, const Question& question);

}  // namespace orthant::cli
