#include "orthant/base/format.hpp"
#include "orthant/model/zoo/network.hpp"

namespace orthant::model::zoo {
namespace {

constexpr double slope = 0.3;

void add_block(GraphBuilder& builder, int number, std::int64_t filters) {
  builder.add(fmt::format("conv{}", number),
              Conv{.filters = filters, .window = cube_window(3, 1, 1), .init = Init::glorot_uniform});
  builder.add(fmt::format("conv{}_act", number), Activation{ActivationKind::leaky_relu, slope});
  builder.add(fmt::format("pool{}", number), Pool{.kind = PoolKind::max, .window = cube_window(2, 2, 0)});
}

void add_dense(GraphBuilder& builder, int number, std::int64_t features, double dropout) {
  builder.add(fmt::format("fc{}", number), Dense{.features = features, .init = Init::glorot_uniform});
  builder.add(fmt::format("fc{}_act", number), Activation{ActivationKind::leaky_relu, slope});
  add_dropout(builder, fmt::format("drop{}", number), dropout);
}

Graph make(const tensor::Shape& input, const Settings& settings) {
  const std::int64_t outputs = settings.at_least(1, "outputs");
  const double dropout = settings.rate("dropout");
  GraphBuilder builder("cosmoflow-mlperf", 3, input);
  for (int block = 0; block < 5; ++block) add_block(builder, block + 1, std::int64_t{32} << block);
  builder.add("flatten", Flatten{});
  add_dense(builder, 1, 128, dropout);
  add_dense(builder, 2, 64, dropout);
  builder.add("fc3", Dense{.features = outputs, .init = Init::glorot_uniform});
  builder.add("fc3_act", Activation{ActivationKind::tanh});
  builder.add("scale", Scale{.factor = 1.2});
  return builder.finish(mean_squared_error());
}

}  // namespace

Network cosmoflow_mlperf() {
  return {.entry = {.name = "cosmoflow-mlperf",
                    .description = "CosmoFlow as the MLPerf HPC benchmark has it",
                    .input = {{1, 4, 128, 128, 128}, 3},
                    .settings = {{"dropout", "0.5", "rate after the first two dense layers"},
                                 {"outputs", "4", "parameters to predict"}}},
          .make = make};
}

}  // namespace orthant::model::zoo
