#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/model/zoo/network.hpp"

#include <array>

namespace orthant::model::zoo {
namespace {

constexpr int levels = 3;  ///< each halves every dim

struct Builder {
  GraphBuilder graph;
  bool batch_norm = true;

  /// conv + norm + relu.
  int add_conv(const std::string& block, int number, std::int64_t filters) {
    graph.add(fmt::format("{}.conv{}", block, number),
              Conv{.filters = filters, .window = cube_window(3, 1, 1), .bias = !batch_norm, .init = Init::he_normal});
    if (batch_norm) graph.add(fmt::format("{}.bn{}", block, number), BatchNorm{});
    return graph.add(fmt::format("{}.relu{}", block, number), Activation{ActivationKind::relu});
  }

  int add_block(const std::string& block, std::int64_t first, std::int64_t second) {
    add_conv(block, 1, first);
    return add_conv(block, 2, second);
  }

  void add_up(const std::string& block, std::int64_t upsampled, int skip) {
    const int up = graph.add(
        block + ".deconv",
        ConvTranspose{.filters = upsampled, .window = cube_window(2, 2, 0), .bias = false, .init = Init::he_normal});
    graph.add(block + ".concat", Concat{}, {up, skip});
    add_block(block, upsampled / 2, upsampled / 2);
  }
};

void check_extents(const tensor::Shape& input) {
  for (const tensor::Dim dim : tensor::spatial_dims) {
    if (input[dim] % (1 << levels) != 0) {
      base::fail(base::Exit::bad_data,
                 "unet3d: input: extent {} in dim {} is not a multiple of {}; pad or crop the volume", input[dim],
                 tensor::name_of(dim), 1 << levels);
    }
  }
}

Graph make(const tensor::Shape& input, const Settings& settings) {
  const std::int64_t width = settings.at_least(1, "width");
  const std::int64_t classes = settings.at_least(2, "classes");
  check_extents(input);
  Builder builder{GraphBuilder("unet3d", 3, input), settings.flag("batch_norm")};
  std::array<int, levels> skips{};
  for (int level = 0; level < levels; ++level) {
    const std::string block = fmt::format("down{}", level + 1);
    skips[level] = builder.add_block(block, width << level, width << (level + 1));
    builder.graph.add(block + ".pool", Pool{.kind = PoolKind::max, .window = cube_window(2, 2, 0)});
  }
  builder.add_block("bottom", width << levels, width << (levels + 1));
  for (int level = levels - 1; level >= 0; --level) {
    builder.add_up(fmt::format("up{}", level + 1), width << (level + 2), skips[level]);
  }
  builder.graph.add("head", Conv{.filters = classes, .window = cube_window(1, 1, 0), .bias = false});
  return builder.graph.finish(cross_entropy());
}

}  // namespace

Network unet3d() {
  return {.entry = {.name = "unet3d",
                    .description = "segmentation of volumes, one class per voxel (after Cicek et al. 2016)",
                    .input = {{1, 1, 128, 128, 128}, 3},
                    .settings = {{"batch_norm", "true", "normalise after every convolution but the last"},
                                 {"classes", "3", "classes per voxel"},
                                 {"width", "32", "filters of the first convolution; all others follow"}}},
          .make = make};
}

}  // namespace orthant::model::zoo
