// A program of its own that trains a small network with Orthant as a library: it learns the mean of 8x8x8 volumes.
#include "orthant/base/error.hpp"
#include "orthant/base/random.hpp"
#include "orthant/comm/alone.hpp"
#include "orthant/engine/session.hpp"
#include "orthant/microbatch/store.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/plan/plan.hpp"

#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

namespace {

using namespace orthant;

model::Graph make_network() {
  using model::Activation, model::ActivationKind, model::Conv, model::Dense, model::Flatten, model::Pool;
  const tensor::Window window{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  const tensor::Window halve{.size = tensor::cube(2), .stride = tensor::cube(2)};

  model::GraphBuilder builder("volume-mean", 3, {.n = 4, .c = 1, .d = 8, .h = 8, .w = 8});
  builder.add("conv", Conv{.filters = 16, .window = window});
  builder.add("activation", Activation{.kind = ActivationKind::leaky_relu});
  builder.add("pool", Pool{.kind = model::PoolKind::average, .window = halve});
  builder.add("flatten", Flatten{});
  builder.add("dense", Dense{.features = 1});
  return builder.finish({.terms = {{.kind = model::LossKind::mean_squared_error}}});
}

// Each sample is noise around a level of its own, and the level is what the network shall find.
void make_samples(std::uint64_t step, std::span<float> input, std::span<float> target) {
  const std::size_t sample_count = target.size(), sample_size = input.size() / sample_count;
  const std::uint64_t key = base::keyed(7, step);
  for (std::size_t sample = 0; sample < sample_count; ++sample) {
    target[sample] = static_cast<float>(base::uniform(key, sample));
    const std::uint64_t noise = base::keyed(key, sample);
    for (std::size_t i = 0; i < sample_size; ++i)
      input[sample * sample_size + i] = target[sample] + 0.1F * static_cast<float>(base::uniform(noise, i) - 0.5);
  }
}

void train() {
  const model::Graph graph = make_network();
  comm::Alone alone;
  // Kernels are measured once per machine, as the command does it, and remembered.
  engine::Session session(graph, plan::serial_plan(graph), alone,
                          {.lowering = {.optimizer = {.kind = model::OptimizerKind::adam}},
                           .threads = 2,
                           .kernels = {.measure = true, .cache_path = microbatch::store_path()}});
  session.initialise_weights(/*seed=*/1);
  engine::Engine& engine = session.engine();
  std::printf("%lld parameters, %lld bytes of memory\n", static_cast<long long>(model::parameter_count(graph)),
              static_cast<long long>(engine.placement().arena_bytes));

  const int input = session.schedule().inputs.front().buffer, target = session.schedule().targets.front().buffer;
  std::vector<float> inputs(engine.item_count(input)), targets(engine.item_count(target));
  for (int step = 1; step <= 100; ++step) {
    make_samples(static_cast<std::uint64_t>(step), inputs, targets);
    engine.write(input, inputs);
    engine.write(target, targets);
    engine.run({.step = step, .learning_rate = 0.01});
    if (step == 1 || step % 10 == 0) std::printf("step %3d loss %.6f\n", step, engine.losses().back());
  }
}

}  // namespace

int main() {
  try {
    train();
  } catch (const orthant::base::Error& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
