#pragma once

#include <CLI/CLI.hpp>

namespace orthant::cli {

/// Each adds one command below `orthant data`, or below `orthant data make`.
void add_data_convert(CLI::App& data);
void add_data_inspect(CLI::App& data);
void add_data_make(CLI::App& data);
void add_data_verify(CLI::App& data);
void add_make_cosmology(CLI::App& make);
void add_make_organs(CLI::App& make);

}  // namespace orthant::cli
