#pragma once

#include "orthant/schedule/lowering.hpp"

/// How each op is lowered on one rank, forward and backward together, a file per kind of op. A new op does not compile
/// until it has both.
namespace orthant::schedule::ops {

// contraction.cpp
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Conv& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::ConvTranspose& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Dense& op);
void backward(Lowering& lowering, const Unit& unit, const model::Conv& op);
void backward(Lowering& lowering, const Unit& unit, const model::ConvTranspose& op);
void backward(Lowering& lowering, const Unit& unit, const model::Dense& op);

// pool.cpp
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Pool& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::GlobalAveragePool& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::GlobalMaxPool& op);
void backward(Lowering& lowering, const Unit& unit, const model::Pool& op);
void backward(Lowering& lowering, const Unit& unit, const model::GlobalAveragePool& op);
void backward(Lowering& lowering, const Unit& unit, const model::GlobalMaxPool& op);

// norm.cpp
NodeValue forward(Lowering& lowering, const Unit& unit, const model::BatchNorm& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::SampleNorm& op);
void backward(Lowering& lowering, const Unit& unit, const model::BatchNorm& op);
void backward(Lowering& lowering, const Unit& unit, const model::SampleNorm& op);

// product.cpp
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Multiply& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Affine& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::PRelu& op);
void backward(Lowering& lowering, const Unit& unit, const model::Multiply& op);
void backward(Lowering& lowering, const Unit& unit, const model::Affine& op);
void backward(Lowering& lowering, const Unit& unit, const model::PRelu& op);

// remap.cpp
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Resize& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Slice& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Pad& op);
void backward(Lowering& lowering, const Unit& unit, const model::Resize& op);
void backward(Lowering& lowering, const Unit& unit, const model::Slice& op);
void backward(Lowering& lowering, const Unit& unit, const model::Pad& op);

// shuffle.cpp
NodeValue forward(Lowering& lowering, const Unit& unit, const model::ChannelShuffle& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::PixelShuffle& op);
void backward(Lowering& lowering, const Unit& unit, const model::ChannelShuffle& op);
void backward(Lowering& lowering, const Unit& unit, const model::PixelShuffle& op);

// cellwise.cpp
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Activation& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Softmax& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Scale& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Dropout& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Add& op);
void backward(Lowering& lowering, const Unit& unit, const model::Activation& op);
void backward(Lowering& lowering, const Unit& unit, const model::Softmax& op);
void backward(Lowering& lowering, const Unit& unit, const model::Scale& op);
void backward(Lowering& lowering, const Unit& unit, const model::Dropout& op);
void backward(Lowering& lowering, const Unit& unit, const model::Add& op);

// shape.cpp
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Input& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Concat& op);
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Flatten& op);
void backward(Lowering& lowering, const Unit& unit, const model::Input& op);
void backward(Lowering& lowering, const Unit& unit, const model::Concat& op);
void backward(Lowering& lowering, const Unit& unit, const model::Flatten& op);

// loss.cpp
/// The loss of the micro-batch and the gradient of its output.
void loss(Lowering& lowering);
/// Ranks without a share of the output learn the losses from one that has.
void spread_losses(Lowering& lowering, int tag);

}  // namespace orthant::schedule::ops
