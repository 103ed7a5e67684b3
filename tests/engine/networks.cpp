#include "tests/engine/networks.hpp"

namespace orthant::test {
namespace {

using model::ActivationKind;
using model::GraphBuilder;
using model::LossKind;
using model::PoolKind;
using tensor::cube;
using tensor::square;
using tensor::Window;

constexpr Window window(std::int64_t size, std::int64_t stride, std::int64_t padding) {
  return {.size = cube(size), .stride = cube(stride), .pad_lo = cube(padding), .pad_hi = cube(padding)};
}

constexpr Window flat_window(std::int64_t size, std::int64_t stride, std::int64_t padding) {
  return {
      .size = square(size), .stride = square(stride), .pad_lo = {0, padding, padding}, .pad_hi = {0, padding, padding}};
}

constexpr model::Activation activation(ActivationKind kind) { return {.kind = kind, .slope = 0.1}; }

model::Loss one_loss(LossKind kind) { return {.terms = {{.kind = kind}}}; }

/// conv + bias + activation, activation + pool of both kinds, flatten, dense + activation, dropout.
model::Graph chain() {
  GraphBuilder builder("chain", 3, {.n = 2, .c = 2, .d = 6, .h = 5, .w = 6});
  builder.add("conv1", model::Conv{.filters = 3, .window = window(3, 1, 1)});
  builder.add("act1", activation(ActivationKind::leaky_relu));
  builder.add("pool1", model::Pool{.kind = PoolKind::max, .window = window(2, 2, 0)});
  builder.add("conv2", model::Conv{.filters = 4, .window = window(2, 1, 0), .bias = false});
  builder.add("act2", activation(ActivationKind::tanh));
  builder.add("pool2", model::Pool{.kind = PoolKind::average, .window = {.size = {2, 1, 2}}});
  builder.add("flatten", model::Flatten{});
  builder.add("dense1", model::Dense{.features = 5});
  builder.add("act3", activation(ActivationKind::relu));
  builder.add("dropout", model::Dropout{.rate = 0.4});
  builder.add("dense2", model::Dense{.features = 3, .bias = false});
  return builder.finish(one_loss(LossKind::mean_squared_error));
}

/// norm + activation, norm + add + activation, identity and projected shortcuts, global average pooling.
model::Graph residual() {
  GraphBuilder builder("residual", 2, {.n = 3, .c = 2, .d = 1, .h = 7, .w = 6});
  builder.add("conv1", model::Conv{.filters = 4, .window = flat_window(3, 1, 1), .bias = false});
  builder.add("bn1", model::BatchNorm{});
  const int stem = builder.add("relu1", activation(ActivationKind::relu));
  builder.add("conv2", model::Conv{.filters = 4, .window = flat_window(3, 1, 1), .bias = false});
  builder.add("bn2", model::BatchNorm{.epsilon = 1e-3, .momentum = 0.3});
  builder.add("add1", model::Add{}, {builder.last(), stem});
  const int block = builder.add("relu2", activation(ActivationKind::relu));
  builder.add("conv3", model::Conv{.filters = 5, .window = flat_window(3, 2, 1), .bias = false});
  const int main = builder.add("bn3", model::BatchNorm{});
  builder.add("project", model::Conv{.filters = 5, .window = flat_window(1, 2, 0), .bias = false}, {block});
  const int shortcut = builder.add("bn4", model::BatchNorm{});
  builder.add("add2", model::Add{}, {main, shortcut});
  builder.add("tanh", activation(ActivationKind::tanh));
  builder.add("gap", model::GlobalAveragePool{});
  builder.add("flatten", model::Flatten{});
  builder.add("fc", model::Dense{.features = 3});
  return builder.finish(one_loss(LossKind::cross_entropy));
}

/// Skips by concatenation, transposed convolutions with bias, a loss per voxel with two terms.
model::Graph unet() {
  GraphBuilder builder("unet", 3, {.n = 1, .c = 1, .d = 4, .h = 4, .w = 6});
  builder.add("conv1", model::Conv{.filters = 3, .window = window(3, 1, 1), .bias = false});
  builder.add("bn1", model::BatchNorm{});
  const int skip = builder.add("relu1", activation(ActivationKind::relu));
  builder.add("pool", model::Pool{.kind = PoolKind::max, .window = window(2, 2, 0)});
  builder.add("conv2", model::Conv{.filters = 4, .window = window(3, 1, 1), .bias = true});
  builder.add("sigmoid", activation(ActivationKind::sigmoid));
  builder.add("up", model::ConvTranspose{.filters = 4, .window = window(2, 2, 0)});
  builder.add("concat", model::Concat{}, {builder.last(), skip});
  builder.add("conv3", model::Conv{.filters = 3, .window = window(3, 1, 1), .bias = false});
  builder.add("bn2", model::BatchNorm{});
  builder.add("act", activation(ActivationKind::leaky_relu));
  builder.add("head", model::Conv{.filters = 3, .window = window(1, 1, 0), .bias = false});
  return builder.finish(
      {.terms = {{.kind = LossKind::cross_entropy, .weight = 0.7}, {.kind = LossKind::soft_dice, .weight = 1.3}}});
}

/// Tensors that several ops read, sums of three, the same source twice, a lone activation everywhere.
model::Graph shared() {
  GraphBuilder builder("shared", 3, {.n = 2, .c = 3, .d = 3, .h = 4, .w = 4});
  const int input = builder.last();
  const int a = builder.add("conv_a", model::Conv{.filters = 3, .window = window(3, 1, 1)}, {input});
  const int b = builder.add("act_b", activation(ActivationKind::tanh), {a});
  const int c = builder.add("act_c", activation(ActivationKind::sigmoid), {a});
  const int d = builder.add("sum", model::Add{}, {a, b, c});
  const int e = builder.add("act_e", activation(ActivationKind::relu), {d});
  const int f = builder.add("twice", model::Add{}, {e, e});
  const int g = builder.add("norm", model::BatchNorm{}, {f});
  const int h = builder.add("both", model::Concat{}, {g, e, g});
  const int i = builder.add("act_i", activation(ActivationKind::leaky_relu), {h});
  const int j = builder.add("scale", model::Scale{.factor = -1.5}, {i});
  const int k = builder.add("pool", model::Pool{.kind = PoolKind::max, .window = window(3, 1, 1)}, {i});
  const int l = builder.add("join", model::Add{}, {j, k});
  builder.add("soft", model::Softmax{}, {l});
  builder.add("mix", model::Conv{.filters = 2, .window = window(2, 2, 0)});
  return builder.finish({.terms = {{.kind = LossKind::mean_absolute_error, .weight = 0.4},
                                   {.kind = LossKind::mean_squared_error, .weight = 2}}});
}

/// One sample whose tensors shrink to one cell: concatenations of vectors, flattens that are no copies.
model::Graph vectors() {
  GraphBuilder builder("vectors", 3, {.n = 1, .c = 2, .d = 3, .h = 3, .w = 2});
  const int input = builder.last();
  builder.add("conv_a", model::Conv{.filters = 3, .window = {.size = {3, 3, 2}}}, {input});
  builder.add("act_a", activation(ActivationKind::tanh));
  const int a = builder.add("flat_a", model::Flatten{});
  builder.add("gap", model::GlobalAveragePool{}, {input});
  const int b = builder.add("flat_b", model::Flatten{});
  builder.add("flat_c", model::Flatten{}, {input});
  builder.add("dense_c", model::Dense{.features = 4});
  const int c = builder.add("act_c", activation(ActivationKind::sigmoid));
  builder.add("dense_d", model::Dense{.features = 3}, {b});
  const int d = builder.add("soft_d", model::Softmax{});
  builder.add("concat", model::Concat{}, {b, a, c, d});
  builder.add("dense", model::Dense{.features = 4});
  builder.add("soft", model::Softmax{});
  builder.add("scale", model::Scale{.factor = 3});
  return builder.finish(one_loss(LossKind::mean_squared_error));
}

/// Strides, dilation, groups and uneven padding, forward and transposed, in two dimensions.
model::Graph windows() {
  GraphBuilder builder("windows", 2, {.n = 2, .c = 4, .d = 1, .h = 8, .w = 7});
  builder.add("grouped", model::Conv{.filters = 6,
                                     .window = {.size = {1, 3, 2},
                                                .stride = {1, 2, 1},
                                                .dilation = {1, 1, 2},
                                                .pad_lo = {0, 1, 0},
                                                .pad_hi = {0, 0, 2}},
                                     .groups = 2});
  builder.add("act1", activation(ActivationKind::tanh));
  builder.add("depthwise", model::Conv{.filters = 6, .window = flat_window(3, 1, 1), .groups = 6, .bias = false});
  builder.add("bn", model::BatchNorm{});
  builder.add("sigmoid", activation(ActivationKind::sigmoid));
  builder.add("up", model::ConvTranspose{
                        .filters = 4,
                        .window = {.size = {1, 3, 3}, .stride = {1, 2, 2}, .pad_lo = {0, 1, 0}, .pad_hi = {0, 1, 1}},
                        .output_padding = {0, 1, 1},
                        .groups = 2});
  builder.add("act2", activation(ActivationKind::relu));
  builder.add("pool",
              model::Pool{.kind = PoolKind::average,
                          .window = {.size = {1, 3, 2}, .stride = {1, 2, 2}, .pad_lo = {0, 1, 0}, .pad_hi = {0, 0, 1}},
                          .count_include_pad = false});
  builder.add("up2", model::ConvTranspose{.filters = 2, .window = flat_window(2, 1, 0), .bias = false});
  builder.add("drop", model::Dropout{.rate = 0});
  builder.add("end", activation(ActivationKind::identity));
  return builder.finish(one_loss(LossKind::mean_absolute_error));
}

/// Normalisation at the input, twice in a row, of what others read, and as the output.
model::Graph norms() {
  GraphBuilder builder("norms", 3, {.n = 3, .c = 2, .d = 2, .h = 3, .w = 3});
  builder.add("bn1", model::BatchNorm{});
  builder.add("bn2", model::BatchNorm{});
  const int a = builder.add("conv", model::Conv{.filters = 3, .window = window(2, 1, 1)});
  const int b = builder.add("bn3", model::BatchNorm{}, {a});
  const int c = builder.add("add", model::Add{}, {a, b});
  builder.add("drop", model::Dropout{.rate = 0.25}, {c});
  builder.add("pool", model::Pool{.kind = PoolKind::max, .window = window(2, 1, 0)});
  const int d = builder.add("bn4", model::BatchNorm{});
  builder.add("act", activation(ActivationKind::leaky_relu), {d});
  const int e = builder.add("bn5", model::BatchNorm{});
  builder.add("add2", model::Add{}, {d, e});
  builder.add("bn6", model::BatchNorm{});
  return builder.finish(one_loss(LossKind::soft_dice));
}

/// Norms per sample with and without what they are fused with, before activations of every kind.
model::Graph sample_norms() {
  using Kind = model::SampleNormKind;
  GraphBuilder builder("sample_norms", 3, {.n = 2, .c = 4, .d = 2, .h = 3, .w = 4});
  builder.add("group", model::SampleNorm{.groups = 2, .epsilon = 1e-2});
  const int a = builder.add("silu", activation(ActivationKind::silu));
  builder.add("conv", model::Conv{.filters = 4, .window = window(3, 1, 1)});
  builder.add("instance", model::SampleNorm{.kind = Kind::instance, .epsilon = 1e-2});
  builder.add("add", model::Add{}, {builder.last(), a});
  const int b = builder.add("gelu", activation(ActivationKind::gelu));
  builder.add("plain", model::SampleNorm{.kind = Kind::instance, .epsilon = 1e-2, .affine = false});
  builder.add("elu", activation(ActivationKind::elu));
  builder.add("one", model::SampleNorm{.epsilon = 1e-2, .affine = false});
  builder.add("add2", model::Add{}, {builder.last(), b});
  builder.add("leaky", activation(ActivationKind::leaky_relu));
  builder.add("layer", model::SampleNorm{.kind = Kind::layer, .epsilon = 1e-2});
  builder.add("conv2", model::Conv{.filters = 4});
  builder.add("hard_swish", activation(ActivationKind::hard_swish));
  builder.add("layer2", model::SampleNorm{.kind = Kind::layer, .epsilon = 1e-2, .affine = false});
  builder.add("prelu", model::PRelu{});
  builder.add("prelu1", model::PRelu{.shared = true});
  builder.add("bn", model::BatchNorm{.epsilon = 1e-2});
  builder.add("silu2", activation(ActivationKind::silu));
  return builder.finish(one_loss(LossKind::mean_squared_error));
}

/// Squeeze and excite, an attention gate, products of equals and of a tensor with itself, layer scale, constants.
model::Graph gates() {
  GraphBuilder builder("gates", 3, {.n = 2, .c = 3, .d = 2, .h = 4, .w = 3});
  const int x = builder.add("conv", model::Conv{.filters = 4, .window = window(3, 1, 1)});
  builder.add("squeeze", model::GlobalAveragePool{});
  builder.add("reduce", model::Conv{.filters = 2});
  builder.add("silu", activation(ActivationKind::silu));
  builder.add("expand", model::Conv{.filters = 4});
  const int gate = builder.add("hard_sigmoid", activation(ActivationKind::hard_sigmoid));
  const int excited = builder.add("excite", model::Multiply{}, {x, gate});
  builder.add("psi", model::Conv{.filters = 1}, {excited});
  const int attention = builder.add("sigmoid", activation(ActivationKind::sigmoid));
  const int attended = builder.add("attend", model::Multiply{}, {excited, attention});
  builder.add("scale", model::Affine{.bias = false, .weight_value = 0.1});
  builder.add("same", model::Multiply{}, {builder.last(), attended});
  builder.add("square", model::Multiply{}, {builder.last(), builder.last()});
  builder.add("constants", model::Affine{.trainable = false});
  builder.add("affine", model::Affine{});
  builder.add("mean", model::GlobalAveragePool{}, {attention});
  builder.add("by_sample", model::Multiply{}, {builder.last() - 1, builder.last()});
  return builder.finish(one_loss(LossKind::mean_squared_error));
}

/// Resizes of every mode, slices and paddings, and a broadcast of one cell beside what it came from.
model::Graph resizes() {
  using Mode = model::ResizeMode;
  GraphBuilder builder("resizes", 3, {.n = 2, .c = 3, .d = 2, .h = 3, .w = 4});
  builder.add("reflect", model::Pad{.mode = model::PadMode::reflect, .lo = {1, 2, 0}, .hi = {0, 1, 3}});
  builder.add("conv", model::Conv{.filters = 4, .window = window(2, 1, 0)});
  builder.add("nearest", model::Resize{.factor = {2, 1, 1.5}});
  builder.add("slice", model::Slice{.first_channel = 1, .first = {1, 0, 2}, .size = {2, 0, 0}, .step = {1, 2, 1}});
  const int a = builder.add("tanh", activation(ActivationKind::tanh));
  builder.add("linear", model::Resize{.mode = Mode::linear, .factor = {2, 2, 2}});
  builder.add("down", model::Resize{.mode = Mode::linear, .align_corners = true, .size = {3, 4, 5}});
  builder.add("zeros", model::Pad{.lo = {1, 0, 2}, .hi = {0, 1, 0}});
  builder.add("edge", model::Pad{.mode = model::PadMode::edge, .lo = {0, 1, 0}, .hi = {2, 0, 1}});
  builder.add("pool", model::GlobalAveragePool{}, {a});
  builder.add("mix", model::Conv{.filters = 2});
  const int all = builder.add("broadcast", model::Resize{.mode = Mode::linear, .size = {6, 6, 8}});
  builder.add("join", model::Concat{}, {all, builder.last() - 3});
  return builder.finish(one_loss(LossKind::mean_squared_error));
}

}  // namespace

std::vector<model::Graph> small_networks() {
  return {chain(), residual(), unet(), shared(), vectors(), windows(), norms(), sample_norms(), gates(), resizes()};
}

}  // namespace orthant::test
