#include "orthant/calibrate/machine.hpp"

#include "orthant/base/format.hpp"
#include "orthant/calibrate/median.hpp"
#include "orthant/comm/typed.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/engine/arena.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/engine/session.hpp"
#include "orthant/engine/step_memory.hpp"
#include "orthant/kernels/peak.hpp"
#include "orthant/model/network.hpp"
#include "orthant/oracle/memory.hpp"
#include "orthant/plan/strategy.hpp"

#include <unistd.h>

#include <filesystem>

namespace orthant::calibrate {
namespace {

using engine::clock_seconds;

/// Runs a task on zeroed memory; the median of several runs.
double task_seconds(const model::Task& task, int threads, const std::vector<void*>& arguments, int times) {
  const auto primitive = kernels::make_primitive(task, threads);
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    const double start = clock_seconds();
    primitive->execute({}, arguments, nullptr);
    seconds.push_back(clock_seconds() - start);
  }
  return median(seconds);
}

double memory_speed(comm::Comm& comm, int threads) {
  // Larger than the second-level caches, of which other machines have more.
  constexpr std::int64_t items = 16 << 20;
  const engine::Arena arena(3 * items * 4);
  const tensor::Layout layout = tensor::channels_last({.n = 1, .c = items / (64 * 64 * 64), .d = 64, .h = 64, .w = 64});
  const model::AddTask task{layout, layout, layout};
  const std::vector<void*> arguments{arena.data(), arena.data() + items * 4, arena.data() + items * 8};
  comm.barrier();
  return static_cast<double>(model::bytes_moved(task)) / task_seconds(task, threads, arguments, 9);
}

/// What the engine adds to a kernel: a call, and a look after messages.
double step_seconds(comm::Comm& comm) {
  constexpr int calls = 10'000;
  comm.barrier();
  const double start = clock_seconds();
  for (int i = 0; i < calls; ++i) comm.progress();
  return (clock_seconds() - start) / calls;
}

}  // namespace

oracle::Setting measure_setting(comm::Comm& comm, int threads) {
  comm.barrier();
  const double peak = kernels::fma_peak_gflops(threads) * 1e9;
  const double ranks = comm.size();
  const std::vector<int> per_machine = comm.ranks_per_machine();
  return {.threads = threads,
          .ranks_per_machine = *std::max_element(per_machine.begin(), per_machine.end()),
          .flops_per_second = comm::sum(comm, peak) / ranks,
          .memory_bytes_per_second = comm::sum(comm, memory_speed(comm, threads)) / ranks,
          .step_seconds = comm::sum(comm, step_seconds(comm)) / ranks};
}

std::int64_t measure_process_bytes(comm::Comm& comm, int threads) {
  const model::Graph graph =
      model::load_network("cosmoflow", {.input = "4x32x32x32", .mini_batch = comm.size(), .settings = {}});
  engine::Session session(graph, plan::make_plan(graph, "data", comm.size()), comm, {.threads = threads});
  session.initialise_weights(1);
  session.engine().run({});
  const oracle::Memory memory = oracle::memory_of(session.schedule(), 0);
  return comm::max(comm, std::max<std::int64_t>(0, engine::peak_memory_bytes() - memory.resident()));
}

double measure_file_speed(const std::string& folder) {
  constexpr std::size_t block_bytes = 4 << 20, blocks = 32;
  const std::string path = fmt::format("{}/calibrate.{}", folder, getpid());
  std::vector<std::byte> block(block_bytes, std::byte{1});
  std::vector<double> seconds;
  data::io::OutputFile written(path);
  for (std::size_t i = 0; i < blocks; ++i) written.write(block);
  written.commit();
  {
    const data::io::InputFile file(path);
    for (int i = 0; i < 3; ++i) {
      const double start = clock_seconds();
      for (std::size_t at = 0; at < blocks; ++at) file.read(static_cast<std::int64_t>(at * block_bytes), block);
      seconds.push_back(clock_seconds() - start);
    }
  }
  std::filesystem::remove(path);
  return static_cast<double>(blocks * block_bytes) / median(seconds);
}

}  // namespace orthant::calibrate
