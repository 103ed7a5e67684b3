#pragma once

#include "orthant/base/json_fwd.hpp"
#include "orthant/cli/plan.hpp"
#include "orthant/cli/plan_remedies.hpp"

#include <optional>
#include <vector>

namespace orthant::cli {

/// All that `orthant plan` says to a question.
struct Answer {
  planner::Planned planned;
  std::vector<planner::WhatIf> what_ifs{};
  std::vector<std::string> remedies{};
  std::optional<UsefulRanks> useful{};
};

std::string to_text(const Question& question, const Answer& answer);
base::Json to_json(const Question& question, const Answer& answer);

}  // namespace orthant::cli
