#include "orthant/cli/data.hpp"

namespace orthant::cli {

void add_data_make(CLI::App& data) {
  CLI::App* make = data.add_subcommand("make", "Make samples: universes, or organs with their segmentation");
  make->require_subcommand(1);
  add_make_cosmology(*make);
  add_make_organs(*make);
}

}  // namespace orthant::cli
