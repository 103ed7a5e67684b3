#pragma once

#include "orthant/base/json_fwd.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/data/tools/file_report.hpp"

namespace orthant::cli {

base::Json to_json(const data::tools::FileReport& report);

}  // namespace orthant::cli
