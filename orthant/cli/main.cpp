#include "orthant/cli/command_line.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/parallel.hpp"

int main(int argc, char** argv) {
  orthant::cli::set_command_line(argc, argv);
  CLI::App app{"Orthant trains convolutional networks on samples too large for one machine.", "orthant"};
  orthant::cli::add_models(app);
  orthant::cli::add_inspect(app);
  orthant::cli::add_train(app);
  orthant::cli::add_evaluate(app);
  orthant::cli::add_infer(app);
  orthant::cli::add_step(app);
  orthant::cli::add_bench(app);
  orthant::cli::add_data(app);
  orthant::cli::add_doctor(app);
  return orthant::cli::run(app, argc, argv);
}
