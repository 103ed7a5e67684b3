#pragma once

#include "tests/engine/networks.hpp"
#include "tests/engine/random_plan.hpp"

#include <cstdint>
#include <string>

namespace orthant::test {

using tensor::Shape;
using tensor::Window;

/// A network around one random op that is exact on small whole numbers.
class SmallCase {
 public:
  explicit SmallCase(std::uint64_t seed, bool biases = true) : random_(seed), biases_(biases) {}

  model::Graph make() {
    const Shape shape{pick(1, 3), pick(1, 6), pick(1, 7), pick(1, 6), pick(1, 8)};
    model::GraphBuilder builder("case", 3, shape);
    if (pick(0, 2) == 0) builder.add("before", conv(builder.shape(0), 1));
    add_op(builder, builder.last());
    if (pick(0, 3) == 0) builder.add("act", activation());
    if (pick(0, 3) == 0 && builder.shape(builder.last()).d > 1)
      builder.add("after", conv(builder.shape(builder.last()), 1));
    // The gradient of this sum of squares is the difference itself: a whole number.
    const double weight = static_cast<double>(tensor::volume(builder.shape(builder.last()))) / 2;
    return builder.finish({.terms = {{.weight = weight}}});
  }

  Random& random() { return random_; }

 private:
  int pick(int lo, int hi) { return static_cast<int>(random_.integer(lo, hi)); }
  bool bias() { return pick(0, 1) == 1 && biases_; }

  model::Activation activation() {
    if (pick(0, 1) == 0) return {.kind = model::ActivationKind::relu};
    return {.kind = model::ActivationKind::leaky_relu, .slope = 0.5};
  }

  /// Kernels larger than a block, strides in every phase, dilation, uneven padding; never a place that sees only
  /// padding.
  Window window(const Shape& extents, int largest) {
    Window result;
    for (const tensor::Dim dim : tensor::spatial_dims) {
      result.size[dim] = pick(1, largest);
      result.dilation[dim] = pick(0, 3) == 0 ? 2 : 1;
      result.stride[dim] = pick(1, 3);
      const std::int64_t reach = tensor::reach(result, dim);
      const auto most = static_cast<int>(std::min<std::int64_t>(2, reach - 1));
      result.pad_lo[dim] = pick(0, most);
      result.pad_hi[dim] = pick(0, most);
      if (extents[dim] + result.pad_lo[dim] + result.pad_hi[dim] < reach) {
        result.size[dim] = result.dilation[dim] = 1;
        result.pad_lo[dim] = result.pad_hi[dim] = 0;
      }
    }
    return result;
  }

  /// Sizes that averages divide by without rest.
  Window even_window(const Shape& extents) {
    Window result;
    for (const tensor::Dim dim : tensor::spatial_dims) {
      result.size[dim] = extents[dim] >= 2 ? pick(1, 2) : 1;
      result.stride[dim] = pick(1, 3);
      if (result.size[dim] == 2) result.pad_lo[dim] = pick(0, 1);
    }
    return result;
  }

  model::Conv conv(const Shape& src, std::int64_t groups) {
    return {
        .filters = groups * pick(1, groups > 1 ? 3 : 7), .window = window(src, 4), .groups = groups, .bias = bias()};
  }

  std::int64_t some_groups(std::int64_t channels) {
    std::int64_t groups = pick(1, static_cast<int>(channels));
    while (channels % groups != 0) --groups;
    return groups;
  }

  void add_op(model::GraphBuilder& builder, int src) {
    const Shape shape = builder.shape(src);
    switch (pick(0, 22)) {
      case 19: {
        builder.add("shuffle", model::ChannelShuffle{.groups = some_groups(shape.c)});
        break;
      }
      case 20: builder.add("max", model::GlobalMaxPool{}); break;
      case 21: {
        model::PixelShuffle shuffle{.to_channels = pick(0, 1) == 0};
        for (const tensor::Dim dim : tensor::spatial_dims) {
          if (shuffle.to_channels ? shape[dim] % 2 == 0 : pick(0, 1) == 0) shuffle.factor[dim] = 2;
          if (shuffle.to_channels && shape[dim] % 3 == 0) shuffle.factor[dim] = 3;
        }
        const std::int64_t count = shuffle.factor.d * shuffle.factor.h * shuffle.factor.w;
        if (!shuffle.to_channels) builder.add("widen", model::Conv{.filters = count * pick(1, 3), .bias = false});
        builder.add("pixels", shuffle);
        break;
      }
      case 14: {
        if (!biases_) return add_op(builder, src);  // a product grows faster than its sources
        const int gate = builder.add("gate", model::Conv{.filters = pick(0, 1) == 0 ? shape.c : 1, .bias = false});
        builder.add("product", model::Multiply{}, {src, gate});
        break;
      }
      case 15: builder.add("pad", pad(shape)); break;
      case 16: builder.add("slice", slice(shape)); break;
      case 17:
        builder.add("resize",
                    model::Resize{.mode = pick(0, 1) == 0 ? model::ResizeMode::nearest : model::ResizeMode::linear,
                                  .factor = {2, 2, 1}});
        break;
      case 18:
        if (biases_) builder.add("prelu", model::PRelu{.shared = pick(0, 1) == 1});
        builder.add("affine", model::Affine{.bias = bias()});
        break;
      case 0:
      case 1:
      case 2:
      case 22: builder.add("conv", conv(shape, 1)); break;
      case 3: builder.add("grouped", conv(shape, some_groups(shape.c))); break;
      case 4: {
        const std::int64_t groups = pick(0, 1) == 0 ? 1 : some_groups(shape.c);
        Window up = window({1, 1, 9, 9, 9}, 3);
        for (const tensor::Dim dim : tensor::spatial_dims) up.pad_lo[dim] = up.pad_hi[dim] = 0;
        builder.add(
            "up", model::ConvTranspose{.filters = groups * pick(1, 4), .window = up, .groups = groups, .bias = bias()});
        break;
      }
      case 5: builder.add("max", model::Pool{.kind = model::PoolKind::max, .window = window(shape, 3)}); break;
      case 6:
        builder.add("average", model::Pool{.kind = model::PoolKind::average, .window = even_window(shape)});
        break;
      case 7: builder.add("scale", model::Scale{.factor = 2, .offset = bias() ? 3.0 : 0.0}); break;
      case 8: builder.add("drop", model::Dropout{.rate = 0.5}); break;
      case 9: {
        const int other = builder.add("conv", conv_same(shape));
        builder.add("sum", model::Add{}, {src, other});
        break;
      }
      case 10: {
        const int other = builder.add("conv", conv_same(shape));
        builder.add("join", model::Concat{}, {other, src, other});
        break;
      }
      case 11:
        builder.add("flat", model::Flatten{});
        builder.add("dense", model::Dense{.features = pick(1, 9), .bias = bias()});
        builder.add("dense2", model::Dense{.features = pick(1, 9), .bias = bias()});
        break;
      case 12:
        builder.add("conv", conv(shape, 1));
        builder.add("act1", activation());
        builder.add("max",
                    model::Pool{.kind = model::PoolKind::max, .window = window(builder.shape(builder.last()), 2)});
        break;
      default: builder.add("act0", activation()); break;
    }
  }

  model::Pad pad(const Shape& extents) {
    model::Pad result{.mode = static_cast<model::PadMode>(pick(0, 2))};
    for (const tensor::Dim dim : tensor::spatial_dims) {
      const auto most = static_cast<int>(std::min<std::int64_t>(3, extents[dim] - 1));
      result.lo[dim] = pick(0, most);
      result.hi[dim] = pick(0, most);
    }
    return result;
  }

  model::Slice slice(const Shape& extents) {
    model::Slice result{.first_channel = pick(0, static_cast<int>(extents.c) - 1)};
    for (const tensor::Dim dim : tensor::spatial_dims) {
      result.first[dim] = pick(0, static_cast<int>(extents[dim]) - 1);
      result.step[dim] = pick(1, 2);
    }
    return result;
  }

  /// A convolution that keeps the shape.
  model::Conv conv_same(const Shape& src) {
    Window same;
    for (const tensor::Dim dim : tensor::spatial_dims) {
      same.size[dim] = pick(0, 1) == 0 ? 1 : 3;
      same.pad_lo[dim] = same.pad_hi[dim] = same.size[dim] / 2;
    }
    return {.filters = src.c, .window = same, .bias = false};
  }

  Random random_;
  bool biases_;
};

}  // namespace orthant::test
