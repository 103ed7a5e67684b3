#pragma once

#include "orthant/engine/session.hpp"
#include "orthant/train/checkpoint/manifest.hpp"

#include <string>
#include <vector>

namespace orthant::train::checkpoint {

/// The names of the numbers that an optimizer keeps for each item, in its order: PyTorch's.
std::vector<std::string> state_parts(const model::Optimizer& optimizer);

/// The first rank of those that share this rank's running statistics of a node, if they are not those of all holders;
/// -1 if they are.
int statistics_leader(const engine::Session& session, const schedule::ParameterBuffers& entry);

/// The part of a run's tensors that this rank alone writes, and a copy of it: what it updates of trained parameters,
/// with the optimizer's state, and running statistics of which it is the first holder. Every item of every parameter is
/// owned by one rank.
class OwnState {
 public:
  /// Allocates the copy.
  OwnState(const engine::Session& session, const model::Optimizer& optimizer);

  /// Of the copy; files are a little larger.
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(copy_.size() * sizeof(float)); }
  /// Takes the copy. Call it between steps.
  void copy(const engine::Engine& engine);
  /// Writes the copy into a new safetensors file, unless this rank owns nothing. Throws Error (87) if a number is not
  /// finite. Does not touch the engine, so another thread may call it.
  [[nodiscard]] Written write(const std::string& directory, const std::string& name, const State& state) const;

 private:
  /// Consecutive items in kernels' order.
  struct Source {
    std::string tensor, part;
    const model::Parameter* parameter = nullptr;
    int buffer = -1;
    std::size_t first = 0;   ///< item of the buffer
    tensor::Range items;     ///< of the shard
    std::size_t offset = 0;  ///< in the copy
    engine::KernelOrder order;
    std::vector<engine::KernelOrder::Part> parts;
  };
  void add(const engine::Session& session, const schedule::ParameterBuffers& entry, const std::string& part,
           const schedule::Piece& piece, const tensor::Range& items);
  [[nodiscard]] std::string header(const State& state) const;
  [[nodiscard]] std::span<const float> memory(const Source& source) const;

  std::vector<Source> sources_;
  std::vector<float> copy_;
  int rank_ = 0;
};

}  // namespace orthant::train::checkpoint
