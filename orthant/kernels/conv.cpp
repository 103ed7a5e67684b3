#include "orthant/kernels/conv.hpp"

#include "orthant/base/error.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/instruction_set.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/winograd/conv.hpp"

#include <algorithm>
#include <array>

namespace orthant::kernels {
namespace {

using model::Algorithm;
using model::ConvTask;
using model::Pass;
using tensor::Dim;

using Order = std::array<Algorithm, model::named_algorithms.size()>;

std::int64_t src_channels(const ConvTask& task) { return task.src.extents.c / task.groups; }
std::int64_t dst_channels(const ConvTask& task) { return task.dst.extents.c / task.groups; }

// The limits below are where the measured times of two algorithms cross. oneDNN comes first only where its brgconv
// does: its execute() allocates, which a training step must not do, and elsewhere it is ahead of our kernels only in
// deep layers with few pixels, where little time is spent.

/// The narrow kernels work on cells of four channels, so a source with exactly four needs no padding.
bool suits_narrow_winograd(const ConvTask& task) { return src_channels(task) == 4 && winograd::applies_narrow(task); }

/// Winograd saves multiplications, but has to transform tiles and weights. The former pays from 16 channels on, the
/// latter if enough tiles share the weights.
bool suits_winograd(const ConvTask& task) {
  constexpr std::int64_t least_channels = 16;
  constexpr std::int64_t most_weights_per_tile = 131072;
  constexpr std::int64_t most_transposed_weights_per_tile = 16384;
  constexpr std::int64_t least_points = 16;  // three taps in a single dim save too little
  if (!winograd::applies(task, winograd::TileSize::small)) return false;
  if (!suits_narrow_winograd(task) && std::min(src_channels(task), dst_channels(task)) < least_channels) return false;
  const tensor::Shape& cells = task.pass == Pass::backward_data ? task.src.extents : task.dst.extents;
  std::int64_t tiles = cells.n;
  std::int64_t points = 1;
  for (const Dim dim : tensor::spatial_dims) {
    const bool three = task.window.size[dim] == 3;
    tiles *= three ? (cells[dim] + 1) / 2 : cells[dim];
    points *= three ? 4 : 1;
  }
  if (points < least_points) return false;
  if (task.pass == Pass::backward_weights) return tiles >= 64;
  const std::int64_t most = task.pass == Pass::forward ? most_weights_per_tile : most_transposed_weights_per_tile;
  return points * src_channels(task) * dst_channels(task) <= most * tiles;
}

/// Matrix products are fast only with whole panels of columns.
bool suits_matrix(const ConvTask& task) { return std::min(src_channels(task), dst_channels(task)) >= 32; }

/// With few channels oneDNN's brgconv, which AVX-512 machines have, is ahead of ours in the forward pass.
bool suits_brgconv(const ConvTask& task) {
  return task.pass == Pass::forward && src_channels(task) < 16 && simd_target() == "avx3";
}

Order by_rule(const ConvTask& task) {
  using enum Algorithm;
  if (suits_winograd(task)) return {winograd, direct, onednn, matrix, winograd_large, winograd_staged, onednn_winograd};
  if (suits_brgconv(task)) return {onednn, direct, matrix, winograd, winograd_large, winograd_staged, onednn_winograd};
  if (suits_matrix(task)) return {matrix, direct, onednn, winograd, winograd_large, winograd_staged, onednn_winograd};
  return {direct, onednn, matrix, winograd, winograd_large, winograd_staged, onednn_winograd};
}

Order preference(const ConvTask& task) {
  Order order = by_rule(task);
  std::stable_partition(order.begin(), order.end(), [&](Algorithm one) { return one == task.algorithm; });
  return order;
}

std::optional<winograd::Kind> winograd_kind(Algorithm algorithm) {
  if (algorithm == Algorithm::winograd) return winograd::Kind::small;
  if (algorithm == Algorithm::winograd_large) return winograd::Kind::large;
  if (algorithm == Algorithm::winograd_staged) return winograd::Kind::staged;
  return std::nullopt;
}

std::unique_ptr<Primitive> make(Algorithm algorithm, const ConvTask& task, int threads) {
  switch (algorithm) {
    case Algorithm::automatic: break;
    case Algorithm::winograd:
    case Algorithm::winograd_large:
    case Algorithm::winograd_staged: return winograd::make_conv(task, *winograd_kind(algorithm), threads);
    case Algorithm::matrix: return matrix::make_conv(task, threads);
    case Algorithm::onednn: return onednn::make_conv(task, threads);
    case Algorithm::onednn_winograd: return onednn::make_winograd(task, threads);
    case Algorithm::direct: return direct::make_conv(task, threads);
  }
  return nullptr;
}

bool reads_weights(const ConvTask& task) { return task.pass != Pass::backward_weights; }

/// The same convolution on weights as they are.
ConvTask unprepared(ConvTask task) {
  task.prepared_bytes = 0;
  return task;
}

[[noreturn]] void refuse(Algorithm algorithm) {
  base::fail(base::Exit::does_not_fit, "{} cannot run this convolution here; choose another algorithm",
             model::name_of(algorithm));
}

/// The algorithm that the task names, or the first by the rule that can run it.
Algorithm chosen(const ConvTask& task, int threads) {
  if (task.algorithm != Algorithm::automatic) {
    if (!make(task.algorithm, task, threads)) refuse(task.algorithm);
    return task.algorithm;
  }
  for (const Algorithm algorithm : by_rule(task)) {
    if (make(algorithm, task, threads)) return algorithm;
  }
  return Algorithm::direct;
}

PreparedWeights prepared_by(Algorithm algorithm, const ConvTask& task, int threads) {
  if (!reads_weights(task)) return {};
  if (const auto kind = winograd_kind(algorithm)) return winograd::prepared_weights(task, *kind);
  if (algorithm == Algorithm::onednn) return onednn::prepared_weights(task, threads);
  return {};
}

/// The algorithm of a task with prepared weights.
Algorithm prepared_algorithm(const ConvTask& task, int threads) {
  const Algorithm algorithm = chosen(unprepared(task), threads);
  const std::int64_t bytes = prepared_by(algorithm, unprepared(task), threads).bytes;
  if (bytes != task.prepared_bytes || bytes == 0) {
    base::fail(base::Exit::internal, "a convolution by {} got {} bytes of prepared weights; its kernel takes {}",
               model::name_of(algorithm), task.prepared_bytes, bytes);
  }
  return algorithm;
}

}  // namespace

std::vector<ConvCandidate> conv_candidates(const ConvTask& task, int threads, model::ErrorClass most) {
  limit_instructions();
  std::vector<ConvCandidate> candidates;
  if (task.prepared_bytes != 0) {
    const Algorithm algorithm = prepared_algorithm(task, threads);
    candidates.push_back({algorithm, make(algorithm, task, threads)});
    return candidates;
  }
  for (const Algorithm algorithm : preference(task)) {
    if (model::error_class(algorithm) > most && algorithm != task.algorithm) continue;
    if (auto primitive = make(algorithm, task, threads)) {
      candidates.push_back({algorithm, std::move(primitive)});
    }
  }
  return candidates;
}

std::vector<ConvAlgorithm> conv_algorithms(const ConvTask& task, int threads, model::ErrorClass most) {
  std::vector<ConvAlgorithm> algorithms;
  for (const ConvCandidate& candidate : conv_candidates(task, threads, most))
    algorithms.push_back({candidate.algorithm, candidate.primitive->scratch_bytes()});
  return algorithms;
}

std::optional<std::int64_t> conv_scratch_bytes(const ConvTask& task, Algorithm algorithm, int threads) {
  limit_instructions();
  const auto primitive = make(algorithm, unprepared(task), threads);
  return primitive ? std::optional(primitive->scratch_bytes()) : std::nullopt;
}

std::unique_ptr<Primitive> make_conv(const ConvTask& task, int threads) {
  if (task.prepared_bytes != 0) return make(prepared_algorithm(task, threads), task, threads);
  if (task.algorithm != Algorithm::automatic) {
    auto primitive = make(task.algorithm, task, threads);
    if (!primitive) refuse(task.algorithm);
    return primitive;
  }
  for (const Algorithm algorithm : by_rule(task)) {
    if (auto primitive = make(algorithm, task, threads)) return primitive;
  }
  return nullptr;  // not reached: direct never refuses
}

PreparedWeights prepared_weights(const ConvTask& task, int threads) {
  if (!reads_weights(task)) return {};
  limit_instructions();
  return prepared_by(chosen(unprepared(task), threads), unprepared(task), threads);
}

std::unique_ptr<Primitive> make_prepare_weights(const model::PrepareWeightsTask& task, int threads) {
  if (const auto kind = winograd_kind(prepared_algorithm(task.conv, threads)))
    return winograd::make_prepare_weights(task.conv, *kind, threads);
  return onednn::make_prepare_weights(task.conv, threads);
}

}  // namespace orthant::kernels
