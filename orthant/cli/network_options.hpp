#pragma once

#include "orthant/model/network.hpp"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace orthant::cli {

/// A network as a command line names it.
struct NetworkArguments {
  std::string model;
  std::string input;
  std::int64_t mini_batch = 1;
  std::vector<std::string> settings;
};

/// The positional MODEL and --set.
void add_model(CLI::App& command, NetworkArguments& arguments);
/// --input and --batch.
void add_shape(CLI::App& command, NetworkArguments& arguments);
/// --threads; 0 means one per core.
void add_threads(CLI::App& command, int& threads);

model::Graph load(const NetworkArguments& arguments);
int thread_count(int wanted);

}  // namespace orthant::cli
