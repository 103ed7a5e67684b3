#pragma once

#include "orthant/base/json_fwd.hpp"
#include "orthant/train/scores.hpp"

#include <string>

namespace orthant::train {

/// "loss 0.0312  MSE 0.0312  MAE 0.141", or "loss 0.112  mean Dice 0.911  accuracy 0.978".
std::string to_text(const Scores& scores);

/// With the names of docs/commands.md; null where a class has no Dice or targets have no variance.
base::Json to_json(const Scores& scores);
/// The scores that to_json() wrote. Throws Error; `origin` names the place.
Scores scores_from_json(const base::Json& json, const std::string& origin);

/// "loss,mean_squared_error,...", and the numbers for it with every digit.
std::string csv_header(const Scores& scores);
std::string csv_row(const Scores& scores);

}  // namespace orthant::train
