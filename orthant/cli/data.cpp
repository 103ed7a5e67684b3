#include "orthant/cli/data.hpp"

#include "orthant/cli/commands.hpp"

namespace orthant::cli {

void add_data(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "Data sets: make volumes to train on");
  data->require_subcommand(1);
  add_data_make(*data);
}

}  // namespace orthant::cli
