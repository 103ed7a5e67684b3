#include "orthant/kernels/conv.hpp"

#include "orthant/kernels/factories.hpp"

#include <algorithm>
#include <array>

namespace orthant::kernels {
namespace {

using model::ConvTask;
using model::Pass;
using tensor::Dim;

enum class Algorithm { winograd, onednn, direct };
using Order = std::array<Algorithm, 3>;

std::int64_t src_channels(const ConvTask& task) { return task.src.extents.c / task.groups; }
std::int64_t dst_channels(const ConvTask& task) { return task.dst.extents.c / task.groups; }

// The limits below are where the measured times cross: docs/results/kernels.md.

/// Winograd saves multiplications but transforms tiles, which pays from 16 channels on, and weights, which pays
/// if enough tiles share them.
bool suits_winograd(const ConvTask& task) {
  constexpr std::int64_t least_channels = 16;
  constexpr std::int64_t weights_per_tile = 32768;
  if (std::min(src_channels(task), dst_channels(task)) < least_channels) return false;
  const tensor::Shape& cells = task.pass == Pass::backward_data ? task.src.extents : task.dst.extents;
  std::int64_t tiles = cells.n;
  std::int64_t points = 1;
  for (const Dim dim : tensor::spatial_dims) {
    const bool three = task.window.size[dim] == 3;
    tiles *= three ? (cells[dim] + 1) / 2 : cells[dim];
    points *= three ? 4 : 1;
  }
  if (points < 16) return false;  // one dim saves too little
  if (task.pass == Pass::backward_weights) return tiles >= 8;
  const std::int64_t limit = task.pass == Pass::forward ? weights_per_tile : weights_per_tile / 2;
  return points * src_channels(task) * dst_channels(task) <= limit * tiles;
}

/// Where our direct kernels are ahead of oneDNN's.
bool suits_direct(const ConvTask& task) {
  const bool strided = task.window.stride != tensor::cube(1);
  const std::int64_t pixels = tensor::pixels(task.dst.extents);
  switch (task.pass) {
    case Pass::forward: return src_channels(task) < 16;
    case Pass::backward_data:
      return tensor::taps(task.window) == 1 ? pixels <= 512 : task.window.stride == task.window.size;
    case Pass::backward_weights:
      return src_channels(task) < 16 || (strided && tensor::taps(task.window) > 1 && pixels >= 4096);
  }
  return false;
}

Order preference(const ConvTask& task) {
  if (suits_winograd(task)) return {Algorithm::winograd, Algorithm::onednn, Algorithm::direct};
  if (suits_direct(task)) return {Algorithm::direct, Algorithm::onednn, Algorithm::winograd};
  return {Algorithm::onednn, Algorithm::direct, Algorithm::winograd};
}

std::unique_ptr<Primitive> make(Algorithm algorithm, const ConvTask& task, int threads) {
  switch (algorithm) {
    case Algorithm::winograd: return make_winograd_conv(task, threads);
    case Algorithm::onednn: return make_onednn_conv(task, threads);
    case Algorithm::direct: return make_direct_conv(task, threads);
  }
  return nullptr;
}

const char* name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::winograd: return "winograd";
    case Algorithm::onednn: return "onednn";
    case Algorithm::direct: return "direct";
  }
  return "";
}

}  // namespace

std::vector<ConvCandidate> conv_candidates(const ConvTask& task, int threads) {
  std::vector<ConvCandidate> candidates;
  for (const Algorithm algorithm : preference(task)) {
    if (auto primitive = make(algorithm, task, threads)) {
      candidates.push_back({name_of(algorithm), std::move(primitive)});
    }
  }
  return candidates;
}

std::unique_ptr<Primitive> make_conv(const ConvTask& task, int threads) {
  for (const Algorithm algorithm : preference(task)) {
    if (auto primitive = make(algorithm, task, threads)) return primitive;
  }
  return nullptr;  // not reached: direct never refuses
}

}  // namespace orthant::kernels
