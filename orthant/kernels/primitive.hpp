#pragma once

#include "orthant/kernels/poll.hpp"
#include "orthant/model/argument_positions.hpp"
#include "orthant/model/task.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <string>

namespace orthant::kernels {

namespace at = model::at;

/// What changes from step to step.
struct Context {
  std::int64_t step = 1;  ///< counts from 1
  std::uint64_t seed = 0;
  double learning_rate = 0;
  Poll* poll = nullptr;                     ///< what long kernels do meanwhile
  std::atomic<bool>* non_finite = nullptr;  ///< set by updates that write a number that is not finite
};

/// Between blocks of a long kernel's work.
inline void poll(const Context& context, int thread) {
  if (context.poll) (*context.poll)(thread);
}

/// A task bound to an implementation. All checks and choices happen when it is made; execute() does neither,
/// and does not allocate.
class Primitive {
 public:
  Primitive() = default;
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;
  virtual ~Primitive() = default;

  /// "jit:avx512_core", "orthant:direct:avx3", ...
  [[nodiscard]] virtual std::string name() const = 0;
  /// Bytes of scratch memory (64-byte aligned) that execute() needs.
  [[nodiscard]] virtual std::int64_t scratch_bytes() const { return 0; }
  /// Arguments in the order of model/argument_positions.hpp: `arguments[at::copy::src]`.
  virtual void execute(const Context& context, std::span<void* const> arguments, void* scratch) = 0;
};

/// Chooses an implementation for `task`. `threads` is the size of the OpenMP team at execution.
/// Throws Error if there is none that is not a reference implementation.
std::unique_ptr<Primitive> make_primitive(const model::Task& task, int threads);

}  // namespace orthant::kernels
