#pragma once

#include "orthant/model/zoo.hpp"
#include "orthant/model/zoo/settings.hpp"

namespace orthant::model::zoo {

/// A member of the zoo: how it is listed and how it is built.
struct Network {
  ZooEntry entry;
  Graph (*make)(const tensor::Shape& input, const Settings& settings) = nullptr;
};

Network cosmoflow();
Network cosmoflow_mlperf();
Network unet3d();
Network resnet18();
Network resnet50();
Network resnet152();
Network wide_resnet50();
Network vgg16();
Network alexnet();

/// A window with the same padding below and above.
inline tensor::Window window(const tensor::Extent3& size, const tensor::Extent3& stride, const tensor::Extent3& pad) {
  return {.size = size, .stride = stride, .pad_lo = pad, .pad_hi = pad};
}
inline tensor::Window cube_window(std::int64_t size, std::int64_t stride, std::int64_t pad) {
  return window(tensor::cube(size), tensor::cube(stride), tensor::cube(pad));
}
inline tensor::Window square_window(std::int64_t size, std::int64_t stride, std::int64_t pad) {
  return window(tensor::square(size), tensor::square(stride), {0, pad, pad});
}

/// Appends a dropout unless the rate is 0.
inline void add_dropout(GraphBuilder& builder, const std::string& name, double rate) {
  if (rate > 0) builder.add(name, Dropout{.rate = rate});
}

inline Loss mean_squared_error() { return {.terms = {{.kind = LossKind::mean_squared_error}}}; }
inline Loss cross_entropy() { return {.terms = {{.kind = LossKind::cross_entropy}}}; }

}  // namespace orthant::model::zoo
