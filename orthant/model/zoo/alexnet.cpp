#include "orthant/base/format.hpp"
#include "orthant/model/zoo/network.hpp"

namespace orthant::model::zoo {
namespace {

constexpr Activation relu{ActivationKind::relu};

void add_conv(GraphBuilder& builder, int index, std::int64_t filters, const tensor::Window& window) {
  builder.add(fmt::format("features.{}", index), Conv{.filters = filters, .window = window});
  builder.add(fmt::format("features.{}", index + 1), relu);
}

void add_pool(GraphBuilder& builder, int index) {
  builder.add(fmt::format("features.{}", index), Pool{.kind = PoolKind::max, .window = square_window(3, 2, 0)});
}

Graph make(const tensor::Shape& input, const Settings& settings) {
  const std::int64_t classes = settings.at_least(2, "classes");
  const std::int64_t conv4 = settings.at_least(1, "conv4");
  const double dropout = settings.rate("dropout");
  GraphBuilder builder("alexnet", 2, input);
  add_conv(builder, 0, 64, square_window(11, 4, 2));
  add_pool(builder, 2);
  add_conv(builder, 3, 192, square_window(5, 1, 2));
  add_pool(builder, 5);
  add_conv(builder, 6, 384, square_window(3, 1, 1));
  add_conv(builder, 8, conv4, square_window(3, 1, 1));
  add_conv(builder, 10, 256, square_window(3, 1, 1));
  add_pool(builder, 12);
  builder.add("flatten", Flatten{});
  for (const int index : {0, 3}) {
    add_dropout(builder, fmt::format("classifier.{}", index), dropout);
    builder.add(fmt::format("classifier.{}", index + 1), Dense{.features = 4096});
    builder.add(fmt::format("classifier.{}", index + 2), relu);
  }
  builder.add("classifier.6", Dense{.features = classes});
  return builder.finish(cross_entropy());
}

}  // namespace

Network alexnet() {
  return {.entry = {.name = "alexnet",
                    .description = "image classification, the one column of mu-cuDNN (Krizhevsky 2014)",
                    .input = {{1, 3, 1, 224, 224}, 2},
                    .settings = {{"classes", "1000", "classes to tell apart"},
                                 {"conv4", "384", "filters of the fourth convolution; torchvision has 256"},
                                 {"dropout", "0.5", "rate before the first two dense layers"}}},
          .make = make};
}

}  // namespace orthant::model::zoo
