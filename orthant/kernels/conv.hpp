#pragma once

#include "orthant/kernels/primitive.hpp"

#include <optional>
#include <string>
#include <vector>

namespace orthant::kernels {

/// What a PrepareWeightsTask writes for a convolution. Preparing pays if two or more calls read the result. A single
/// call is as fast either way, or faster on weights as they are: with many filters (512 in 2-D, 256 in 3-D) Winograd
/// transforms them block by block into the same scratch memory, which stays in the cache, and is up to 10 % ahead.
struct PreparedWeights {
  std::int64_t bytes = 0;  ///< 0 if the kernel takes weights as they are
  /// All that the bytes depend on apart from the weights: convolutions of the same weights with equal forms can read
  /// the same prepared ones.
  std::string form;
};
/// For the algorithm that the task names or, if it names none, that the rule chooses.
PreparedWeights prepared_weights(const model::ConvTask& task, int threads);

}  // namespace orthant::kernels

namespace orthant::kernels::direct {
/// Our own convolution, for any window, groups, channels and strided layouts. It never returns null.
std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, int threads);
}  // namespace orthant::kernels::direct

namespace orthant::kernels::onednn {
/// oneDNN's best implementation. Null if oneDNN has only a reference implementation, if a layout is not dense, if dst
/// does not have all the cells that src allows, or if gradients are to be accumulated.
std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, int threads);
/// oneDNN's Winograd F(4,3) for images, in its own memory order: tensors are copied to scratch memory and back. Null
/// where it has none.
std::unique_ptr<Primitive> make_winograd(const model::ConvTask& task, int threads);
/// Both are for tasks for which make_conv does not return null.
PreparedWeights prepared_weights(const model::ConvTask& task, int threads);
std::unique_ptr<Primitive> make_prepare_weights(const model::ConvTask& task, int threads);
}  // namespace orthant::kernels::onednn

namespace orthant::kernels::winograd {
/// Winograd's minimal filtering (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015).
enum class Kind {
  small,  ///< F(2,3) in every dim with three taps
  large,  ///< F(4,3) or, with five taps, F(2,5) in h and w; F(2,3) in d
  staged  ///< the same with blocks of tiles that are larger than the caches, and scratch memory that grows with src
};
/// Null where it does not apply: strides, dilation, other windows.
std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, Kind kind, int threads);
/// Both are for tasks for which make_conv does not return null.
PreparedWeights prepared_weights(const model::ConvTask& task, Kind kind);
std::unique_ptr<Primitive> make_prepare_weights(const model::ConvTask& task, Kind kind, int threads);
}  // namespace orthant::kernels::winograd

namespace orthant::kernels::matrix {
/// Matrix products over pixels. Null for grouped convolutions and, except for gradients of weights, for windows that
/// overlap or are padded.
std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, int threads);
}  // namespace orthant::kernels::matrix

namespace orthant::kernels {

/// Every way to run a task with errors of at most this class, and the one that it names; the first is the one that
/// make_conv chooses. A task with prepared weights can run in that way only.
struct ConvCandidate {
  model::Algorithm algorithm;
  std::unique_ptr<Primitive> primitive;
};
std::vector<ConvCandidate> conv_candidates(const model::ConvTask& task, int threads,
                                           model::ErrorClass most = model::ErrorClass::exact);

/// The same without the means to run it: the algorithms in that order, each with the scratch memory that it takes.
struct ConvAlgorithm {
  model::Algorithm algorithm = model::Algorithm::automatic;
  std::int64_t scratch_bytes = 0;
};
std::vector<ConvAlgorithm> conv_algorithms(const model::ConvTask& task, int threads,
                                           model::ErrorClass most = model::ErrorClass::exact);

/// The scratch memory of one algorithm for a task; nothing if it cannot run it.
std::optional<std::int64_t> conv_scratch_bytes(const model::ConvTask& task, model::Algorithm algorithm, int threads);

}  // namespace orthant::kernels
