#pragma once

#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/winograd/tiling.hpp"

namespace orthant::kernels::winograd {

TileSize tile_size(Kind kind);

/// True if a task is Winograd's with tiles of this size: a window of which they know all sides, stride and dilation 1,
/// channels side by side.
bool applies(const model::ConvTask& task, TileSize size);

/// "orthant:winograd:", with the tile if it is large.
std::string name_of(Kind kind, const Tiling& tiling);

/// What a fused activation multiplies negative results with.
float slope_of(const model::Activation& activation);

/// Kernels for tasks that it applies to: forward and backward_data; backward_weights.
std::unique_ptr<Primitive> make_correlation(const model::ConvTask& task, Kind kind, int threads);
std::unique_ptr<Primitive> make_weight_gradient(const model::ConvTask& task, Kind kind, int threads);
/// The latter in stages: what makes sense for weights that the second-level cache does not hold.
std::unique_ptr<Primitive> make_staged_gradient(const model::ConvTask& task, Kind kind, int threads);

/// The same for few channels of src and three taps in w: forward and backward_weights, of tasks that small tiles apply
/// to.
bool applies_narrow(const model::ConvTask& task);
std::unique_ptr<Primitive> make_narrow(const model::ConvTask& task, int threads);

}  // namespace orthant::kernels::winograd
