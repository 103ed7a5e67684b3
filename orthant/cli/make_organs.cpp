#include "orthant/cli/data.hpp"
namespace orthant::cli {
void add_make_organs(CLI::App&) {}
}  // namespace orthant::cli
