#include "orthant/engine/piece_run.hpp"

#include <algorithm>

namespace orthant::engine {
namespace {

using model::ConvTask;
using model::Pass;

constexpr std::int64_t sweep_bytes = 16 << 20;

/// Bytes from one sample to the next of each argument; those of weights and biases stay.
std::vector<std::int64_t> sample_bytes(const ConvTask& task) {
  const std::int64_t src = 4 * task.src.strides.n, dst = 4 * task.dst.strides.n;
  switch (task.pass) {
    case Pass::forward: return {src, 0, 0, dst};
    case Pass::backward_data: return {dst, 0, src};
    case Pass::backward_weights: return {src, dst, 0, 0};
  }
  return {};
}

}  // namespace

bool can_be_moved(const ConvTask& task, std::int64_t samples) {
  const std::vector<std::int64_t> bytes = sample_bytes(task);
  return std::all_of(bytes.begin(), bytes.end(), [&](std::int64_t one) { return one * samples % 64 == 0; });
}

PieceRun::PieceRun(const ConvTask& whole, std::span<const model::ConvPiece> pieces, int threads,
                   std::span<void* const> arguments)
    : whole_(whole), arguments_(arguments.begin(), arguments.end()), moved_(arguments_) {
  for (const ConvTask& task : model::divided(whole, pieces)) {
    primitives_.push_back(kernels::make_primitive(task, threads));
    workspace_bytes_ = std::max(workspace_bytes_, primitives_.back()->scratch_bytes());
  }
}

void PieceRun::run(std::int64_t first, std::byte* scratch) {
  const std::vector<std::int64_t> bytes = sample_bytes(whole_);
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    moved_[i] = arguments_[i] ? static_cast<std::byte*>(arguments_[i]) + first * bytes[i] : nullptr;
  for (const auto& primitive : primitives_) primitive->execute({}, moved_, scratch);
}

CacheSweep::CacheSweep() : memory_(sweep_bytes) {}

void CacheSweep::run() {
  constexpr std::int64_t line = 64;
  for (std::int64_t at = 0; at < memory_.bytes(); at += line) memory_.data()[at] ^= std::byte{1};
}

}  // namespace orthant::engine
