#pragma once

#include "orthant/wrapper/budget.hpp"
#include "orthant/wrapper/kernel.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace orthant::wrapper {

/// A problem that programs may ask for: its kernels by number of threads.
class Convolution {
 public:
  Convolution(const Problem& problem, Surroundings& surroundings, Budget* budget);

  [[nodiscard]] const Problem& problem() const { return problem_; }
  void run(const Tensors& tensors, int threads);
  [[nodiscard]] std::vector<Kernel::Report> reports();

 private:
  Problem problem_;
  Surroundings& around_;
  Budget* budget_;
  std::mutex mutex_;
  std::map<int, Kernel> kernels_;
};

/// Which of oneDNN's objects stand for convolutions of ours. What it forgets it keeps for the next.
class Handles {
 public:
  void set(const void* handle, Convolution* convolution);
  [[nodiscard]] Convolution* find(const void* handle) const;
  void forget(const void* handle);

 private:
  using Map = std::unordered_map<const void*, Convolution*>;
  mutable std::shared_mutex mutex_;
  Map map_;
  std::vector<Map::node_type> spare_;
};

/// All that the wrapper knows in a process.
class Process {
 public:
  /// Made when the program first asks for a convolution. Says in one line why it does nothing, if it does nothing.
  static Process& instance();
  /// Null if there is none yet.
  static Process* existing();

  /// The convolution for a problem; null if it is left to oneDNN.
  Convolution* convolution(const Problem& problem, int threads);
  Handles& handles() { return handles_; }
  void left_alone() { ++left_alone_; }
  /// Prints the table if it was asked for.
  void print_summary();

 private:
  Process();

  Options options_;
  std::unique_ptr<Surroundings> around_;  ///< null if options make no sense
  std::unique_ptr<Budget> budget_;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Convolution>> convolutions_;  ///< null where nothing fits
  Handles handles_;
  std::atomic<std::int64_t> left_alone_ = 0;
};

/// Number of threads that a convolution would get here.
int current_threads();

}  // namespace orthant::wrapper
