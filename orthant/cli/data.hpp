#pragma once

#include <CLI/CLI.hpp>

namespace orthant::cli {

/// Each adds one command below `orthant data`.
void add_data_convert(CLI::App& data);
void add_data_inspect(CLI::App& data);
void add_data_verify(CLI::App& data);

}  // namespace orthant::cli
