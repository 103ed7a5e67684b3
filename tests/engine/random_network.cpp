#include "tests/engine/networks.hpp"
#include "tests/support/random.hpp"

#include <algorithm>
#include <string>

namespace orthant::test {
namespace {

using model::ActivationKind;
using tensor::Shape;
using tensor::Window;

/// Adds random ops that fit, one after the other, to random earlier nodes.
class Sketch {
 public:
  explicit Sketch(std::uint64_t seed)
      : random_(seed),
        builder_("random_" + std::to_string(seed), 3, {pick(1, 3), pick(1, 3), pick(1, 4), pick(1, 4), pick(2, 5)}) {}

  model::Graph finish() {
    const int count = pick(5, 12);
    for (int i = 0; i < count; ++i) add_one();
    join_loose_ends();
    return builder_.finish(some_loss());
  }

 private:
  int pick(int lo, int hi) { return static_cast<int>(random_.integer(lo, hi)); }
  std::string name(const char* op) { return op + std::to_string(builder_.last() + 1); }
  const Shape& shape(int node) { return builder_.shape(node); }

  int add(const char* op_name, model::Op op, std::vector<int> srcs) {
    for (const int src : srcs) read_.resize(std::max(read_.size(), static_cast<std::size_t>(src) + 1), false);
    for (const int src : srcs) read_[static_cast<std::size_t>(src)] = true;
    return builder_.add(name(op_name), std::move(op), std::move(srcs));
  }

  /// A window that fits `extents`, without padding for poolings.
  Window some_window(const Shape& extents, bool padded) {
    Window window;
    for (const tensor::Dim dim : tensor::spatial_dims) {
      window.size[dim] = pick(1, static_cast<int>(std::min<std::int64_t>(3, extents[dim])));
      window.stride[dim] = pick(1, 2);
      if (padded) window.pad_lo[dim] = pick(0, 1);
      if (padded) window.pad_hi[dim] = pick(0, 1);
    }
    return window;
  }

  model::Activation some_activation() {
    static constexpr ActivationKind kinds[]{
        ActivationKind::relu,  ActivationKind::leaky_relu,   ActivationKind::tanh,    ActivationKind::sigmoid,
        ActivationKind::elu,   ActivationKind::silu,         ActivationKind::gelu,    ActivationKind::hard_swish,
        ActivationKind::relu6, ActivationKind::hard_sigmoid, ActivationKind::identity};
    return {.kind = kinds[pick(0, 10)], .slope = 0.2};
  }

  void add_one() {
    const int src = pick(0, 3) == 0 ? pick(0, builder_.last()) : builder_.last();
    const Shape& from = shape(src);
    switch (pick(0, 18)) {
      case 0:
        add("conv", model::Conv{.filters = pick(1, 3), .window = some_window(from, true), .bias = pick(0, 1) == 1},
            {src});
        break;
      case 1: add_transposed(src); break;
      case 2: add("max", model::Pool{.kind = model::PoolKind::max, .window = some_window(from, false)}, {src}); break;
      case 3:
        add("average", model::Pool{.kind = model::PoolKind::average, .window = some_window(from, false)}, {src});
        break;
      case 4: add_norm(src); break;
      case 5:
      case 6: add("act", some_activation(), {src}); break;
      case 7: add("soft", model::Softmax{}, {src}); break;
      case 8: add("scale", model::Scale{.factor = 0.7, .offset = 0.1 * pick(0, 1)}, {src}); break;
      case 9: add("drop", model::Dropout{.rate = 0.2 * pick(0, 2)}, {src}); break;
      case 10: add_sum(src); break;
      case 11: add_sample_norm(src); break;
      case 12:
        if (pick(0, 1) == 0) {
          add("prelu", model::PRelu{.shared = pick(0, 1) == 1}, {src});
        } else {
          add("affine", model::Affine{.bias = pick(0, 1) == 1, .trainable = pick(0, 2) > 0}, {src});
        }
        break;
      case 13: add_product(src); break;
      case 14: add_resize(src); break;
      case 15: add_slice(src); break;
      case 16: add_pad(src); break;
      case 17: add_shuffle(src); break;
      default: add_concat(src); break;
    }
  }

  void add_transposed(int src) {
    Window window;
    for (const tensor::Dim dim : tensor::spatial_dims)
      window.size[dim] = window.stride[dim] = shape(src)[dim] > 3 ? 1 : pick(1, 2);
    add("up", model::ConvTranspose{.filters = pick(1, 3), .window = window, .bias = pick(0, 1) == 1}, {src});
  }

  /// Statistics of few items amplify differences: only where there are enough.
  void add_norm(int src) {
    if (tensor::pixels(shape(src)) >= 6) add("norm", model::BatchNorm{.epsilon = 1e-2}, {src});
  }

  /// Few items as above; and one that has a mean of its own would be nothing but zeros.
  void add_sample_norm(int src) {
    const Shape& from = shape(src);
    model::SampleNorm norm{.epsilon = 1e-2, .affine = pick(0, 3) > 0};
    norm.kind = static_cast<model::SampleNormKind>(pick(0, 2));
    norm.groups = from.c % 2 == 0 ? pick(1, 2) : 1;
    const std::int64_t cells = from.d * from.h * from.w;
    const std::int64_t items = norm.kind == model::SampleNormKind::layer   ? from.c
                               : norm.kind == model::SampleNormKind::group ? cells * from.c / norm.groups
                                                                           : cells;
    if (items >= (norm.kind == model::SampleNormKind::layer ? 3 : 6)) add("sample_norm", norm, {src});
  }

  /// By a tensor of the same shape, one number per channel, one per pixel or one per sample.
  void add_product(int src) {
    const Shape from = shape(src);
    int gate = src;
    if (pick(0, 2) > 0) gate = add("gate", model::Conv{.filters = pick(0, 1) == 0 ? from.c : 1}, {gate});
    if (pick(0, 1) == 0) gate = add("mean", model::GlobalAveragePool{}, {gate});
    gate = add("gate_act", {.kind = ActivationKind::sigmoid}, {gate});
    add("product", model::Multiply{}, {src, gate});
  }
  int add(const char* op_name, model::Activation op, std::vector<int> srcs) {
    return add(op_name, model::Op{op}, std::move(srcs));
  }

  void add_resize(int src) {
    model::Resize resize{.mode = static_cast<model::ResizeMode>(pick(0, 1)), .align_corners = pick(0, 1) == 1};
    const bool factor = pick(0, 1) == 0;
    for (const tensor::Dim dim : tensor::spatial_dims) {
      const std::int64_t cells = shape(src)[dim];
      if (factor) resize.factor[static_cast<std::size_t>(dim) - 2] = cells > 3 ? 0.5 : 0.5 * pick(2, 4);
      if (!factor) resize.size[dim] = pick(1, 6);
    }
    add("resize", resize, {src});
  }

  void add_slice(int src) {
    const Shape& from = shape(src);
    model::Slice slice{.first_channel = pick(0, static_cast<int>(from.c) - 1)};
    for (const tensor::Dim dim : tensor::spatial_dims) {
      slice.first[dim] = pick(0, static_cast<int>(from[dim]) - 1) / 2;
      slice.step[dim] = pick(1, 2);
    }
    add("slice", slice, {src});
  }

  void add_pad(int src) {
    model::Pad pad{.mode = static_cast<model::PadMode>(pick(0, 2))};
    for (const tensor::Dim dim : tensor::spatial_dims) {
      const int most = static_cast<int>(std::min<std::int64_t>(2, shape(src)[dim] - 1));
      pad.lo[dim] = pick(0, most);
      pad.hi[dim] = pick(0, most);
    }
    if (tensor::volume(shape(src)) < 500) add("pad", pad, {src});
  }

  void add_shuffle(int src) {
    const Shape& from = shape(src);
    if (pick(0, 2) == 0) {
      add("shuffle", model::ChannelShuffle{.groups = from.c % 2 == 0 ? 2 : from.c}, {src});
      return;
    }
    model::PixelShuffle shuffle{.to_channels = pick(0, 1) == 0};
    for (const tensor::Dim dim : tensor::spatial_dims) {
      if (shuffle.to_channels ? from[dim] % 2 == 0 : pick(0, 1) == 0) shuffle.factor[dim] = 2;
    }
    const std::int64_t count = shuffle.factor.d * shuffle.factor.h * shuffle.factor.w;
    if (shuffle.to_channels ? count * from.c > 12 : tensor::volume(from) > 400) return;
    if (!shuffle.to_channels) src = add("widen", model::Conv{.filters = 2 * count, .bias = false}, {src});
    add("pixels", shuffle, {src});
  }

  void add_sum(int src) {
    std::vector<int> srcs{src};
    for (int other = 0; other <= builder_.last() && srcs.size() < 3; ++other) {
      if (shape(other) == shape(src) && pick(0, 1) == 1) srcs.push_back(other);
    }
    if (srcs.size() > 1) add("sum", model::Add{}, srcs);
  }

  void add_concat(int src) {
    std::vector<int> srcs{src};
    for (int other = 0; other <= builder_.last() && srcs.size() < 3; ++other) {
      if (tensor::spatial(shape(other)) == tensor::spatial(shape(src)) && pick(0, 1) == 1) srcs.push_back(other);
    }
    if (srcs.size() > 1) add("concat", model::Concat{}, srcs);
  }

  /// Every node that nobody reads becomes a vector; the vectors are joined and mapped to the output.
  void join_loose_ends() {
    read_.resize(static_cast<std::size_t>(builder_.last()) + 1, false);
    std::vector<int> ends;
    const int last = builder_.last();
    for (int node = 0; node <= last; ++node) {
      if (read_[static_cast<std::size_t>(node)]) continue;
      int pooled = node;
      if (pick(0, 1) == 1) {
        const bool mean = pick(0, 1) == 1;
        pooled = mean ? add("gap", model::GlobalAveragePool{}, {node}) : add("gmp", model::GlobalMaxPool{}, {node});
      }
      ends.push_back(add("flat", model::Flatten{}, {pooled}));
    }
    const int joined = ends.size() > 1 ? add("join", model::Concat{}, ends) : ends.front();
    add("dense", model::Dense{.features = 3, .bias = pick(0, 1) == 1}, {joined});
    if (pick(0, 2) == 0) add("act", some_activation(), {builder_.last()});
  }

  model::Loss some_loss() {
    static constexpr model::LossKind kinds[]{model::LossKind::mean_squared_error, model::LossKind::cross_entropy,
                                             model::LossKind::soft_dice};
    return {.terms = {{.kind = kinds[pick(0, 2)]}}};
  }

  Random random_;
  model::GraphBuilder builder_;
  std::vector<bool> read_;
};

}  // namespace

model::Graph random_network(std::uint64_t seed) { return Sketch(seed).finish(); }

}  // namespace orthant::test
