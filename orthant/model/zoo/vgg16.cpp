#include "orthant/base/format.hpp"
#include "orthant/model/zoo/network.hpp"

namespace orthant::model::zoo {
namespace {

/// Numbers the layers of torchvision's features.N and classifier.N.
class Builder {
 public:
  explicit Builder(const tensor::Shape& input) : graph_("vgg16", 2, input) {}

  Graph build(std::int64_t classes, double dropout) {
    for (const std::int64_t filters : {64, 128}) add_stage(filters, 2);
    for (const std::int64_t filters : {256, 512, 512}) add_stage(filters, 3);
    graph_.add("flatten", Flatten{});
    for (const int index : {0, 3}) {
      graph_.add(fmt::format("classifier.{}", index), Dense{.features = 4096});
      graph_.add(fmt::format("classifier.{}", index + 1), Activation{ActivationKind::relu});
      add_dropout(graph_, fmt::format("classifier.{}", index + 2), dropout);
    }
    graph_.add("classifier.6", Dense{.features = classes});
    return graph_.finish(cross_entropy());
  }

 private:
  void add_feature(const Op& op) { graph_.add(fmt::format("features.{}", next_++), op); }

  void add_stage(std::int64_t filters, int convs) {
    for (int i = 0; i < convs; ++i) {
      add_feature(Conv{.filters = filters, .window = square_window(3, 1, 1), .init = Init::he_normal});
      add_feature(Activation{ActivationKind::relu});
    }
    add_feature(Pool{.kind = PoolKind::max, .window = square_window(2, 2, 0)});
  }

  GraphBuilder graph_;
  int next_ = 0;
};

Graph make(const tensor::Shape& input, const Settings& settings) {
  return Builder(input).build(settings.at_least(2, "classes"), settings.rate("dropout"));
}

}  // namespace

Network vgg16() {
  return {.entry = {.name = "vgg16",
                    .description = "image classification, 16 layers (Simonyan and Zisserman 2014)",
                    .input = {{1, 3, 1, 224, 224}, 2},
                    .settings = {{"classes", "1000", "classes to tell apart"},
                                 {"dropout", "0.5", "rate after the first two dense layers"}}},
          .make = make};
}

}  // namespace orthant::model::zoo
