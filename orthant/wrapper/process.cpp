#include "orthant/wrapper/process.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/kernels/task_key.hpp"
#include "orthant/kernels/team.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace orthant::wrapper {
namespace {

/// Problems beyond this are left to oneDNN: a program that changes its shapes for ever must not fill the memory.
constexpr std::size_t most_problems = 1024;

std::atomic<Process*> existing_process = nullptr;

void complain(const std::string& what) { fmt::print(stderr, "orthant: {}\n", what); }

}  // namespace

int current_threads() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

Convolution::Convolution(const Problem& problem, Surroundings& surroundings, Budget* budget)
    : problem_(problem), around_(surroundings), budget_(budget) {}

void Convolution::run(const Tensors& tensors, int threads) {
  Kernel* kernel = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = kernels_.try_emplace(threads, problem_, threads, around_);
    kernel = &entry->second;
    if (is_new && budget_) kernel->on_front = [this](Kernel& known) { budget_->add(known); };
  }
  kernel->run(tensors);
}

std::vector<Kernel::Report> Convolution::reports() {
  const std::lock_guard lock(mutex_);
  std::vector<Kernel::Report> reports;
  for (auto& [threads, kernel] : kernels_) {
    if (auto report = kernel.report()) reports.push_back(std::move(*report));
  }
  return reports;
}

void Handles::set(const void* handle, Convolution* convolution) {
  const std::unique_lock lock(mutex_);
  if (const auto found = map_.find(handle); found != map_.end()) {
    found->second = convolution;
    return;
  }
  if (spare_.empty()) {
    map_.emplace(handle, convolution);
    return;
  }
  Map::node_type node = std::move(spare_.back());
  spare_.pop_back();
  node.key() = handle;
  node.mapped() = convolution;
  map_.insert(std::move(node));
}

Convolution* Handles::find(const void* handle) const {
  const std::shared_lock lock(mutex_);
  const auto found = map_.find(handle);
  return found == map_.end() ? nullptr : found->second;
}

void Handles::forget(const void* handle) {
  const std::unique_lock lock(mutex_);
  if (Map::node_type node = map_.extract(handle)) spare_.push_back(std::move(node));
}

Process::Process() {
  try {
    options_ = read_options([](const char* name) { return std::getenv(name); });
    const std::string path = microbatch::store_path();
    around_.reset(new Surroundings{.options = options_, .store = CostStore(path, kernels::machine_key(), complain)});
    if (options_.total_bytes) budget_ = std::make_unique<Budget>(*options_.total_bytes);
  } catch (const std::exception& error) {
    complain(fmt::format("{}; the program runs as without liborthant_dnnl", error.what()));
    around_.reset();
  }
}

Process& Process::instance() {
  // Never destroyed: threads of the program may still compute while it exits.
  static Process* const process = [] {
    auto* made = new Process;
    existing_process = made;
    return made;
  }();
  return *process;
}

Process* Process::existing() { return existing_process; }

Convolution* Process::convolution(const Problem& problem, int threads) {
  if (!around_) return nullptr;
  const std::lock_guard lock(mutex_);
  const Key key = key_of(problem);
  const auto found = convolutions_.find(key);
  if (found != convolutions_.end()) return found->second.get();
  if (convolutions_.size() >= most_problems) return nullptr;
  std::unique_ptr<Convolution>& made = convolutions_[key];
  if (fits(problem, threads, options_, around_->library))
    made = std::make_unique<Convolution>(problem, *around_, budget_.get());
  return made.get();
}

void Process::print_summary() {
  if (!options_.summary) return;
  const std::lock_guard lock(mutex_);
  fmt::print(stderr, "orthant: convolutions of process {}\n", getpid());
  fmt::print(stderr, "{:>10} {:>6} {:>10} {:>9}  {:<9} {}\n", "seconds", "runs", "workspace", "measuring", "chosen by",
             "problem: pieces");
  double seconds = 0;
  for (const auto& [key, convolution] : convolutions_) {
    if (!convolution) continue;
    for (const Kernel::Report& report : convolution->reports()) {
      seconds += report.seconds;
      fmt::print(stderr, "{:>10.4f} {:>6} {:>6.1f} MiB {:>9.3f}  {:<9} {} samples, {}, {} threads: {}\n",
                 report.seconds, report.runs, static_cast<double>(report.workspace_bytes) / 1048576.0,
                 report.measuring_seconds, report.measured ? "measuring" : "rule", report.samples, report.problem,
                 report.threads, report.pieces);
    }
  }
  fmt::print(stderr, "orthant: {:.3f} s in all; {} requests were left to oneDNN\n", seconds, left_alone_.load());
}

namespace {

__attribute__((destructor)) void at_exit() {
  if (Process* process = Process::existing()) process->print_summary();
}

}  // namespace
}  // namespace orthant::wrapper
