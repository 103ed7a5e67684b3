#include "orthant/cli/network_options.hpp"

#include "orthant/kernels/machine.hpp"

namespace orthant::cli {

void add_model(CLI::App& command, NetworkArguments& arguments) {
  command.add_option("model", arguments.model, "A name from `orthant models`, or a network file (.yaml)")->required();
  command
      .add_option("--set", arguments.settings,
                  "A setting of a zoo network, or output=NAME: key=value; may be given again")
      ->allow_extra_args(false);
}

void add_shape(CLI::App& command, NetworkArguments& arguments) {
  command.add_option("--input", arguments.input, "Shape of a sample: CxDxHxW, CxHxW or CxW");
  command.add_option("--batch", arguments.mini_batch, "Samples per mini-batch");
}

void add_threads(CLI::App& command, int& threads) {
  command.add_option("--threads", threads, "Threads; one per core if not given")->check(CLI::Range(1, 4096));
}

model::Graph load(const NetworkArguments& arguments) {
  model::NetworkOptions options{.input = arguments.input, .mini_batch = arguments.mini_batch, .settings = {}};
  for (const std::string& setting : arguments.settings) model::add_setting(options.settings, setting);
  return model::load_network(arguments.model, options);
}

int thread_count(int wanted) { return wanted > 0 ? wanted : kernels::describe_machine().processors; }

}  // namespace orthant::cli
