#pragma once

#include "orthant/base/json_fwd.hpp"
#include "orthant/cli/plan.hpp"

#include <vector>

namespace orthant::cli {

/// All that `orthant plan` says to a question.
struct Answer {
  planner::Planned planned;
  std::vector<planner::WhatIf> what_ifs{};
};

std::string to_text(const Question& question, const Answer& answer);
base::Json to_json(const Question& question, const Answer& answer);

}  // namespace orthant::cli
