#include "orthant/cli/bench.hpp"

#include "orthant/cli/commands.hpp"

#include <algorithm>

namespace orthant::cli {

double best_of(const std::vector<double>& seconds) { return *std::min_element(seconds.begin(), seconds.end()); }

double median_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t half = seconds.size() / 2;
  return seconds.size() % 2 == 1 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2;
}

void add_bench(CLI::App& app) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measure this machine: whole training steps, messages, files, or single kernels");
  bench->require_subcommand(1);
  add_bench_step(*bench);
  add_bench_halo(*bench);
  add_bench_io(*bench);
  add_bench_kernels(*bench);
  add_bench_oracle(*bench);
  add_bench_schedule(*bench);
}

}  // namespace orthant::cli
