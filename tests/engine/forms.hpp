#pragma once

#include "orthant/plan/exchange_forms.hpp"
#include "orthant/plan/strategy.hpp"

#include <array>
#include <string>

namespace orthant::test {

using plan::all_forms;

inline tensor::Window three_taps() {
  return {.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
}

/// A convolution, a pooling and a dense layer: with a power of two of samples, sums of whole numbers are exact.
inline model::Graph exact_network(std::int64_t samples) {
  model::GraphBuilder builder("exact", 3, {.n = samples, .c = 2, .d = 4, .h = 4, .w = 4});
  builder.add("a", model::Conv{.filters = 8, .window = three_taps()});
  builder.add("relu", model::Activation{.kind = model::ActivationKind::relu});
  builder.add("pool", model::Pool{.window = {.size = tensor::cube(2), .stride = tensor::cube(2)}});
  builder.add("flat", model::Flatten{});
  builder.add("dense", model::Dense{.features = 4});
  return builder.finish({.terms = {{}}});
}

/// Layers whose filters and channels can be cut over many ranks, unevenly: what they read is gathered, or summed in
/// parts and scattered.
inline model::Graph network_with_gathers(std::int64_t samples) {
  model::GraphBuilder builder("gathers", 3, {.n = samples, .c = 2, .d = 2, .h = 2, .w = 2});
  builder.add("a", model::Conv{.filters = 18, .window = {}});
  builder.add("b", model::Conv{.filters = 20, .window = three_taps()});
  builder.add("pool", model::Pool{.window = {.size = tensor::cube(2), .stride = tensor::cube(2)}});
  builder.add("flat", model::Flatten{});
  builder.add("dense", model::Dense{.features = 17});
  builder.add("last", model::Dense{.features = 4});
  return builder.finish({.terms = {{}}});
}

/// A network whose statistics are sums of whole numbers. What is normalised is not whole: the dense layer has so few
/// inputs that they are added up in one run, in the same order for any number of samples.
inline model::Graph network_with_statistics(std::int64_t samples) {
  model::GraphBuilder builder("statistics", 3, {.n = samples, .c = 2, .d = 4, .h = 4, .w = 4});
  builder.add("a", model::Conv{.filters = 8, .window = three_taps(), .bias = false});
  builder.add("norm", model::BatchNorm{});
  builder.add("relu", model::Activation{.kind = model::ActivationKind::relu});
  builder.add("pool", model::Pool{.window = {.size = tensor::cube(2), .stride = tensor::cube(2)}});
  builder.add("flat", model::Flatten{});
  builder.add("dense", model::Dense{.features = 4});
  return builder.finish({.terms = {{}}});
}

}  // namespace orthant::test
