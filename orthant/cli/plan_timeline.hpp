#pragma once

#include "orthant/cli/plan.hpp"

namespace orthant::cli {

/// The prediction of a plan with the timelines of all ranks, or of one rank of each class of many.
oracle::Prediction followed(const Question& question, const plan::Plan& plan, int follow_all_up_to);

/// Writes a Chrome trace of the predicted step.
void write_timeline(const std::string& path, const Question& question, const plan::Plan& plan);

}  // namespace orthant::cli
