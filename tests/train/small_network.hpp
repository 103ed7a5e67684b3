#pragma once

#include "orthant/comm/alone.hpp"
#include "orthant/engine/session.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/schedule/schedule.hpp"

namespace orthant::test {

/// conv + batch norm + relu + pool + dense on 2 x 2 x 4 x 4 x 4, three values out.
inline model::Graph small_graph(std::int64_t mini_batch = 2) {
  const tensor::Window three{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  model::GraphBuilder builder("small", 3, {.n = mini_batch, .c = 2, .d = 4, .h = 4, .w = 4});
  builder.add("conv1", model::Conv{.filters = 4, .window = three});
  builder.add("norm1", model::BatchNorm{});
  builder.add("relu1", model::Activation{.kind = model::ActivationKind::relu});
  builder.add("pool1", model::Pool{.window = {.size = tensor::cube(2), .stride = tensor::cube(2)}});
  builder.add("flatten", model::Flatten{});
  builder.add("fc1", model::Dense{.features = 3});
  return builder.finish({{{model::LossKind::mean_squared_error, 1}}});
}

inline comm::Comm& alone() {
  static comm::Alone one;
  return one;
}

inline engine::Engine small_engine(const model::Graph& graph, const schedule::LowerOptions& options = {}) {
  return engine::Engine(schedule::lower(graph, plan::serial_plan(graph), 0, options), alone(),
                        {.threads = 1, .before_allocation = {}});
}

/// The same with what belongs to it.
inline engine::Session small_session(const model::Graph& graph, const schedule::LowerOptions& options = {}) {
  return {graph, plan::serial_plan(graph), alone(), {.lowering = options}};
}

}  // namespace orthant::test
