#pragma once

#include "orthant/engine/arena.hpp"
#include "orthant/kernels/primitive.hpp"
#include "orthant/model/pieces.hpp"

#include <memory>
#include <span>
#include <vector>

namespace orthant::engine {

/// The kernels of a divided convolution, to be run on memory of its own. A convolution that is only a piece of another
/// can be run at other samples, too.
class PieceRun {
 public:
  /// `arguments` are those of `whole` and must outlive this. Throws Error if a piece's algorithm cannot run it.
  PieceRun(const model::ConvTask& whole, std::span<const model::ConvPiece> pieces, int threads,
           std::span<void* const> arguments);

  /// The most that one of the kernels takes.
  [[nodiscard]] std::int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Runs all kernels, `first` samples further on. `scratch` has workspace_bytes().
  void run(std::int64_t first, std::byte* scratch);

 private:
  model::ConvTask whole_;
  std::vector<void*> arguments_, moved_;
  std::vector<std::unique_ptr<kernels::Primitive>> primitives_;
  std::int64_t workspace_bytes_ = 0;
};

/// Whether a convolution can be run at other samples by moving its arguments: kernels expect them at cache lines.
bool can_be_moved(const model::ConvTask& task, std::int64_t samples);

/// Puts something else into the caches.
class CacheSweep {
 public:
  CacheSweep();
  void run();

 private:
  Arena memory_;
};

}  // namespace orthant::engine
