#include "orthant/cli/data.hpp"

#include "orthant/cli/commands.hpp"

namespace orthant::cli {

void add_data(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "Data sets: make them, look into files, check and convert them");
  data->require_subcommand(1);
  add_data_make(*data);
  add_data_inspect(*data);
  add_data_verify(*data);
  add_data_convert(*data);
}

}  // namespace orthant::cli
