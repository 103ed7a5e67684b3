#include "orthant/base/format.hpp"
#include "orthant/model/zoo/network.hpp"

#include <algorithm>
#include <array>

namespace orthant::model::zoo {
namespace {

constexpr std::array<std::int64_t, 7> filters{16, 32, 64, 128, 256, 256, 256};
constexpr std::size_t strided_conv = 3;  ///< conv4 has stride 2

std::int64_t smallest_extent(const tensor::Shape& shape) { return std::min({shape.d, shape.h, shape.w}); }
std::int64_t half(std::int64_t extent) { return (extent + 1) / 2; }

/// A pool follows a convolution as long as two cells per dim are left for the dense layers (2048 items for a cube).
bool has_pool(std::size_t block, const tensor::Shape& src) {
  const std::int64_t pooled = half(smallest_extent(src));
  return (block < strided_conv ? half(pooled) : pooled) >= 2;
}

void add_block(GraphBuilder& builder, std::size_t block, bool batch_norm) {
  const std::string number = fmt::format("{}", block + 1);
  builder.add("conv" + number, Conv{.filters = filters[block],
                                    .window = cube_window(3, block == strided_conv ? 2 : 1, 1),
                                    .bias = false,
                                    .init = Init::glorot_uniform});
  if (batch_norm) builder.add("bn" + number, BatchNorm{.momentum = 0.001});
  builder.add(fmt::format("conv{}_act", number), Activation{ActivationKind::leaky_relu, 0.01});
  if (has_pool(block, builder.shape(builder.last()))) {
    builder.add("pool" + number, Pool{.kind = PoolKind::average, .window = cube_window(3, 2, 1)});
  }
}

Graph make(const tensor::Shape& input, const Settings& settings) {
  const std::int64_t outputs = settings.at_least(1, "outputs");
  const double dropout = settings.rate("dropout");
  const bool batch_norm = settings.flag("batch_norm");
  GraphBuilder builder("cosmoflow", 3, input);
  for (std::size_t block = 0; block < filters.size(); ++block) add_block(builder, block, batch_norm);
  builder.add("flatten", Flatten{});
  int layer = 1;
  for (const std::int64_t features : {std::int64_t{2048}, std::int64_t{256}, outputs}) {
    add_dropout(builder, fmt::format("drop{}", layer), dropout);
    builder.add(fmt::format("fc{}", layer),
                Dense{.features = features, .init = Init::glorot_uniform, .bias_value = 0.1});
    if (layer < 3) builder.add(fmt::format("fc{}_act", layer), Activation{ActivationKind::leaky_relu, 0.01});
    ++layer;
  }
  return builder.finish(mean_squared_error());
}

}  // namespace

Network cosmoflow() {
  return {.entry = {.name = "cosmoflow",
                    .description = "cosmological parameters from dark-matter volumes (Oyama et al. 2020)",
                    .input = {{1, 4, 128, 128, 128}, 3},
                    .settings = {{"batch_norm", "false", "normalise after every convolution"},
                                 {"dropout", "0.2", "rate before every dense layer"},
                                 {"outputs", "4", "parameters to predict"}}},
          .make = make};
}

}  // namespace orthant::model::zoo
