#pragma once

#include "orthant/wrapper/problem.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace orthant::wrapper {

/// The tensors of a convolution, by what they belong to: a gradient of src is `src`.
struct Tensors {
  void *src = nullptr, *weights = nullptr, *bias = nullptr, *dst = nullptr;
};

/// oneDNN's engine and stream, for our own calls.
struct Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

/// A kernel for some samples of a convolution, in the layouts that it wants.
class Core {
 public:
  /// What it wants; n is its number of samples.
  struct Layouts {
    dnnl_memory_desc_t src{}, weights{}, dst{};
  };

  explicit Core(const Layouts& layouts) : layouts_(layouts) {}
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  virtual ~Core() = default;

  [[nodiscard]] const Layouts& layouts() const { return layouts_; }
  /// "winograd", "onednn", ...: the same for all parts of a problem.
  [[nodiscard]] virtual std::string kind() const = 0;
  [[nodiscard]] virtual std::int64_t scratch_bytes() const = 0;
  /// Whether it can add gradients of weights to what is there.
  [[nodiscard]] virtual bool can_accumulate() const = 0;
  virtual void run(const Tensors& tensors, void* scratch, bool accumulate) = 0;

 protected:
  Layouts layouts_;
};

struct CoreOptions {
  int threads = 1;
  bool fast = false;  ///< also those with larger errors
};

/// All that can compute the problem at once; the one that the rule of kernels prefers comes first.
std::vector<std::unique_ptr<Core>> make_cores(const Problem& problem, const CoreOptions& options,
                                              const Library& library);
/// The kernels of our own among them.
std::vector<std::unique_ptr<Core>> make_our_cores(const Problem& problem, const CoreOptions& options);
/// oneDNN's, in the layouts that it likes best.
std::vector<std::unique_ptr<Core>> make_onednn_cores(const Problem& problem, const CoreOptions& options,
                                                     const Library& library);

}  // namespace orthant::wrapper
