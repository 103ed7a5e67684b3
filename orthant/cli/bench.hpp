#pragma once

#include <CLI/CLI.hpp>

#include <vector>

namespace orthant::cli {

void add_bench_step(CLI::App& bench);
void add_bench_halo(CLI::App& bench);
void add_bench_io(CLI::App& bench);
void add_bench_kernels(CLI::App& bench);
void add_bench_oracle(CLI::App& bench);
void add_bench_schedule(CLI::App& bench);

double best_of(const std::vector<double>& seconds);
double median_of(std::vector<double> seconds);

}  // namespace orthant::cli
