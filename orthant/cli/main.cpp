#include "orthant/cli/command_line.hpp"

int main(int argc, char** argv) { return orthant::cli::run(argc, argv); }
