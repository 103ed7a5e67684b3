#pragma once

#include "orthant/base/json_fwd.hpp"
#include "orthant/data/file.hpp"
#include "orthant/data/file_report.hpp"

namespace orthant::cli {

base::Json to_json(const data::FileReport& report);

}  // namespace orthant::cli
