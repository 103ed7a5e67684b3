#pragma once

#include "orthant/microbatch/divide.hpp"
#include "orthant/wrapper/cost_store.hpp"
#include "orthant/wrapper/options.hpp"
#include "orthant/wrapper/way.hpp"
#include "orthant/wrapper/workspace.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace orthant::wrapper {

/// What all kernels share.
struct Surroundings {
  Options options;
  Library library;
  Workspaces workspaces;
  CostStore store;
  std::mutex measuring;  ///< held while something is measured: one at a time
};

/// Pieces in the order in which they are computed, by labels of ways, and how many each computes.
struct Pieces {
  std::vector<std::pair<std::string, std::int64_t>> counts;
  double seconds = 0;
  std::int64_t workspace_bytes = 0;
};
Pieces pieces_of(const microbatch::Division& division);
/// "8 x winograd@32"
std::string to_text(const Pieces& pieces);

/// A problem for a number of threads: how it is divided, and what computes it. Any thread may run it; they take turns.
class Kernel {
 public:
  Kernel(const Problem& problem, int threads, Surroundings& surroundings);

  /// The first time as a rule says, because many programs do something only once. The second time what is not known of
  /// this problem is measured, with these tensors.
  void run(const Tensors& tensors);

  /// All divisions worth considering; empty as long as not all is known.
  [[nodiscard]] const std::vector<microbatch::Division>& front() const { return front_; }
  /// From the next run on.
  void assign(const microbatch::Division& division);

  struct Report {
    std::string problem, pieces;
    std::int64_t samples = 0, runs = 0, workspace_bytes = 0;
    int threads = 1;
    double seconds = 0, measuring_seconds = 0;
    bool measured = false;
  };
  /// Nothing while a thread computes, which at the end of a process it may do for ever.
  [[nodiscard]] std::optional<Report> report();

  /// Called with the kernel when its front is known: where all kernels share a total, it assigns divisions.
  std::function<void(Kernel&)> on_front;

 private:
  struct Run {
    std::unique_ptr<Way> way;
    std::int64_t pieces = 1;
  };

  [[nodiscard]] std::vector<std::unique_ptr<Way>> ways_for(const Cut& cut, bool ours_only) const;
  [[nodiscard]] std::unique_ptr<Way> way_named(const std::string& label) const;
  [[nodiscard]] std::vector<Cut> cuts_worth_trying(double sample_seconds) const;
  void begin_by_rule();
  void remember();
  void try_to_learn(const Tensors& tensors);
  void learn(const Tensors& tensors);
  void choose(const Costs& costs);
  void adopt(const Pieces& pieces);
  void compute(const Tensors& tensors);

  const Problem problem_;
  const int threads_;
  Surroundings& around_;
  const std::string text_;
  std::int64_t limit_;
  std::mutex mutex_;
  std::vector<microbatch::Division> front_;
  Pieces pieces_;
  std::vector<Run> runs_;
  std::int64_t count_ = 0;
  double seconds_ = 0, measuring_seconds_ = 0, first_seconds_ = 0;
  bool is_known_;  ///< or not worth a measurement
  std::mutex assigning_;
  std::unique_ptr<Pieces> assigned_;
};

/// Whether a kernel can run the problem within the limit at all.
bool fits(const Problem& problem, int threads, const Options& options, const Library& library);

}  // namespace orthant::wrapper
