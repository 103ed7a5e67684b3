#include "orthant/base/format.hpp"
#include "orthant/model/zoo/network.hpp"

#include <array>

namespace orthant::model::zoo {
namespace {

using Depths = std::array<int, 4>;  ///< blocks per stage

/// What tells one ResNet from another.
struct Kind {
  const char* name;
  Depths depths;
  bool bottleneck = true;
  std::int64_t width_factor = 1;  ///< multiplies the channels inside a bottleneck, not its output
};

/// Node names are the module paths of torchvision, so that its weights load.
class Builder {
 public:
  Builder(const Kind& kind, const tensor::Shape& input) : kind_(kind), graph_(kind.name, 2, input) {}

  Graph build(std::int64_t classes) {
    add_conv("conv1", 64, square_window(7, 2, 3));
    graph_.add("bn1", BatchNorm{});
    graph_.add("relu", relu);
    graph_.add("maxpool", Pool{.kind = PoolKind::max, .window = square_window(3, 2, 1)});
    for (int stage = 0; stage < 4; ++stage) {
      for (int block = 0; block < kind_.depths[stage]; ++block) {
        add_block(fmt::format("layer{}.{}", stage + 1, block), std::int64_t{64} << stage,
                  stage > 0 && block == 0 ? 2 : 1);
      }
    }
    graph_.add("avgpool", GlobalAveragePool{});
    graph_.add("fc", Dense{.features = classes});
    return graph_.finish(cross_entropy());
  }

 private:
  static constexpr Activation relu{ActivationKind::relu};

  int add_conv(const std::string& name, std::int64_t filters, const tensor::Window& window) {
    return graph_.add(name, Conv{.filters = filters, .window = window, .bias = false, .init = Init::he_normal});
  }

  /// conv<number> + bn<number> of a block.
  int add_layer(const std::string& block, int number, std::int64_t filters, const tensor::Window& window) {
    add_conv(fmt::format("{}.conv{}", block, number), filters, window);
    return graph_.add(fmt::format("{}.bn{}", block, number), BatchNorm{});
  }

  int add_basic(const std::string& block, std::int64_t filters, std::int64_t stride) {
    add_layer(block, 1, filters, square_window(3, stride, 1));
    graph_.add(block + ".relu1", relu);
    return add_layer(block, 2, filters, square_window(3, 1, 1));
  }

  int add_bottleneck(const std::string& block, std::int64_t channels, std::int64_t stride) {
    const std::int64_t inner = channels * kind_.width_factor;
    add_layer(block, 1, inner, square_window(1, 1, 0));
    graph_.add(block + ".relu1", relu);
    add_layer(block, 2, inner, square_window(3, stride, 1));
    graph_.add(block + ".relu2", relu);
    return add_layer(block, 3, 4 * channels, square_window(1, 1, 0));
  }

  void add_block(const std::string& block, std::int64_t channels, std::int64_t stride) {
    const int src = graph_.last();
    const int main = kind_.bottleneck ? add_bottleneck(block, channels, stride) : add_basic(block, channels, stride);
    const std::int64_t filters = graph_.shape(main).c;
    const bool same_shape = stride == 1 && graph_.shape(src).c == filters;
    const int skip = same_shape ? src : add_downsample(block, src, filters, stride);
    graph_.add(block + ".add", Add{}, {main, skip});
    graph_.add(block + ".relu", relu);
  }

  int add_downsample(const std::string& block, int src, std::int64_t filters, std::int64_t stride) {
    const Conv conv{.filters = filters, .window = square_window(1, stride, 0), .bias = false, .init = Init::he_normal};
    graph_.add(block + ".downsample.0", conv, {src});
    return graph_.add(block + ".downsample.1", BatchNorm{});
  }

  Kind kind_;
  GraphBuilder graph_;
};

constexpr Kind kind18{.name = "resnet18", .depths = {2, 2, 2, 2}, .bottleneck = false};
constexpr Kind kind50{.name = "resnet50", .depths = {3, 4, 6, 3}};
constexpr Kind kind152{.name = "resnet152", .depths = {3, 8, 36, 3}};

template <const Kind& kind>
Graph make(const tensor::Shape& input, const Settings& settings) {
  return Builder(kind, input).build(settings.at_least(2, "classes"));
}

Graph make_wide(const tensor::Shape& input, const Settings& settings) {
  const Kind wide{.name = "wide-resnet50", .depths = kind50.depths, .width_factor = settings.at_least(1, "width")};
  return Builder(wide, input).build(settings.at_least(2, "classes"));
}

ZooEntry entry(const char* name, const char* description) {
  return {.name = name,
          .description = description,
          .input = {{1, 3, 1, 224, 224}, 2},
          .settings = {{"classes", "1000", "classes to tell apart"}}};
}

}  // namespace

Network resnet18() { return {entry(kind18.name, "image classification, 18 layers (He et al. 2015)"), make<kind18>}; }
Network resnet50() { return {entry(kind50.name, "image classification, 50 layers (He et al. 2015)"), make<kind50>}; }
Network resnet152() {
  return {entry(kind152.name, "image classification, 152 layers (He et al. 2015)"), make<kind152>};
}

Network wide_resnet50() {
  Network network{entry("wide-resnet50", "resnet50 with wider bottlenecks (Zagoruyko and Komodakis 2016)"), make_wide};
  network.entry.settings.push_back({"width", "2", "factor on the channels inside every bottleneck"});
  return network;
}

}  // namespace orthant::model::zoo
