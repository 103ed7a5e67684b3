#include "orthant/base/checked.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/model/task.hpp"
#include "orthant/model/traits.hpp"

#include <cmath>

namespace orthant::model {
namespace {

using base::checked_add;
using base::checked_mul;
using base::Exit;
using base::fail;
using tensor::Dim;
using tensor::Extent3;
using tensor::name_of;
using tensor::Shape;
using tensor::Window;

/// Larger numbers in a window are mistakes, and below it their sums cannot overflow.
constexpr std::int64_t largest_window_number = std::int64_t{1} << 31;

void check_numbers(const Window& window) {
  tensor::check(window);
  for (const Extent3* values : {&window.size, &window.stride, &window.dilation, &window.pad_lo, &window.pad_hi}) {
    for (const Dim dim : tensor::spatial_dims) {
      if ((*values)[dim] > largest_window_number) {
        fail(Exit::bad_data, "kernel, stride, dilation or padding is {} in dim {}; at most {} is supported",
             (*values)[dim], name_of(dim), largest_window_number);
      }
    }
  }
}

void check_channels(const char* what, std::int64_t value, std::int64_t src_channels, std::int64_t groups) {
  if (value < 1) fail(Exit::bad_data, "{} is {}; it must be at least 1", what, value);
  if (groups < 1) fail(Exit::bad_data, "groups is {}; it must be at least 1", groups);
  if (src_channels % groups != 0) {
    fail(Exit::bad_data, "{} source channels do not divide into {} groups; use a divisor", src_channels, groups);
  }
  if (value % groups != 0)
    fail(Exit::bad_data, "{} {} do not divide into {} groups; use a divisor", value, what, groups);
}

/// Throws if a pooling window could lie wholly in the padding, where there is nothing to take the maximum or mean of.
void check_pool_padding(const Window& window, const Shape& src) {
  for (const Dim dim : tensor::spatial_dims) {
    const std::int64_t pad = std::max(window.pad_lo[dim], window.pad_hi[dim]);
    const bool reaches_in = pad < tensor::reach(window, dim) && src[dim] >= window.dilation[dim];
    if (pad > 0 && !reaches_in) {
      fail(Exit::bad_data,
           "padding {} in dim {} lets a window of {} taps (dilation {}) miss the {} source cells; use less padding",
           pad, name_of(dim), window.size[dim], window.dilation[dim], src[dim]);
    }
  }
}

void check_finite(const char* what, double value) {
  if (!std::isfinite(value)) fail(Exit::bad_data, "{} is {}; it must be a finite number", what, value);
}

Shape with_spatial(const Shape& src, std::int64_t channels, const Extent3& extents) {
  return {src.n, channels, extents.d, extents.h, extents.w};
}

/// One overload per op; sources are there and are as many as the op takes.
struct Rule {
  const std::vector<Shape>& srcs;

  [[nodiscard]] const Shape& src() const { return srcs.front(); }

  Shape operator()(const Input&) const { fail(Exit::bad_data, "a network has one input, its first node"); }

  Shape operator()(const Conv& op) const {
    check_channels("filters", op.filters, src().c, op.groups);
    check_numbers(op.window);
    check_finite("bias_value", op.bias_value);
    return with_spatial(src(), op.filters, tensor::window_output(op.window, tensor::spatial(src())));
  }

  Shape operator()(const ConvTranspose& op) const {
    check_channels("filters", op.filters, src().c, op.groups);
    check_numbers(op.window);
    check_finite("bias_value", op.bias_value);
    for (const Dim dim : tensor::spatial_dims) {
      if (op.output_padding[dim] < 0 || op.output_padding[dim] >= op.window.stride[dim]) {
        fail(Exit::bad_data, "output_padding is {} in dim {}; it must be at least 0 and smaller than the stride, {}",
             op.output_padding[dim], name_of(dim), op.window.stride[dim]);
      }
    }
    const Extent3 extents = tensor::transposed_output(op.window, tensor::spatial(src()), op.output_padding);
    return with_spatial(src(), op.filters, extents);
  }

  Shape operator()(const Pool& op) const {
    check_numbers(op.window);
    const Extent3 extents = tensor::window_output(op.window, tensor::spatial(src()));
    check_pool_padding(op.window, src());
    if (op.kind == PoolKind::max) argmax_bytes(op.window);
    return with_spatial(src(), src().c, extents);
  }

  Shape operator()(const GlobalAveragePool&) const { return {src().n, src().c, 1, 1, 1}; }
  Shape operator()(const GlobalMaxPool&) const { return {src().n, src().c, 1, 1, 1}; }

  Shape operator()(const Dense& op) const {
    if (op.features < 1) fail(Exit::bad_data, "features is {}; it must be at least 1", op.features);
    check_finite("bias_value", op.bias_value);
    if (tensor::spatial(src()) != tensor::cube(1)) {
      fail(Exit::bad_data, "dense takes vectors, but its source is {}; put a flatten or global_average_pool before it",
           tensor::to_text(src()));
    }
    return {src().n, op.features, 1, 1, 1};
  }

  Shape operator()(const BatchNorm& op) const {
    if (!(std::isfinite(op.epsilon) && op.epsilon > 0))
      fail(Exit::bad_data, "epsilon is {}; it must be above 0", op.epsilon);
    if (!(op.momentum >= 0 && op.momentum <= 1))
      fail(Exit::bad_data, "momentum is {}; it must be from 0 to 1", op.momentum);
    return src();
  }

  Shape operator()(const SampleNorm& op) const {
    if (!(std::isfinite(op.epsilon) && op.epsilon > 0))
      fail(Exit::bad_data, "epsilon is {}; it must be above 0", op.epsilon);
    if (op.kind == SampleNormKind::group) check_channels("channels", src().c, src().c, op.groups);
    return src();
  }

  Shape operator()(const PRelu& op) const {
    check_finite("start", op.start);
    return src();
  }

  Shape operator()(const Affine& op) const {
    check_finite("weight_value", op.weight_value);
    check_finite("bias_value", op.bias_value);
    return src();
  }

  Shape operator()(const Multiply&) const {
    if (srcs.size() != 2)
      fail(Exit::bad_data, "multiply takes two sources, but has {}; chain more of them", srcs.size());
    const Shape& gate = srcs[1];
    const bool cells = tensor::spatial(gate) == tensor::spatial(src()) || tensor::spatial(gate) == tensor::cube(1);
    if (gate.n != src().n || !cells || (gate.c != src().c && gate.c != 1)) {
      fail(Exit::bad_data,
           "multiply of {} and {}; the second must have the cells of the first or one, and its channels or one",
           tensor::to_text(src()), tensor::to_text(gate));
    }
    return src();
  }

  Shape operator()(const Resize& op) const {
    Extent3 extents;
    for (std::size_t i = 0; i < op.factor.size(); ++i) {
      const Dim dim = tensor::spatial_dims[i];
      const double factor = op.factor[i];
      if ((op.size[dim] != 0) == (factor != 0) || !std::isfinite(factor) || factor < 0 || op.size[dim] < 0) {
        fail(Exit::bad_data, "size is {} and factor {} in dim {}; give one of them, above 0", op.size[dim], factor,
             name_of(dim));
      }
      const double cells = factor > 0 ? std::floor(static_cast<double>(src()[dim]) * factor) : 0;
      if (cells > static_cast<double>(largest_window_number) || op.size[dim] > largest_window_number) {
        fail(Exit::bad_data, "dim {} would have more than {} cells; use a smaller size or factor", name_of(dim),
             largest_window_number);
      }
      extents[dim] = factor > 0 ? static_cast<std::int64_t>(cells) : op.size[dim];
      if (extents[dim] < 1) {
        fail(Exit::bad_data, "factor {} leaves none of the {} cells in dim {}; use a larger one", factor, src()[dim],
             name_of(dim));
      }
    }
    return with_spatial(src(), src().c, extents);
  }

  Shape operator()(const Slice& op) const {
    const auto count = [](const char* what, std::int64_t first, std::int64_t size, std::int64_t step,
                          std::int64_t extent) {
      const std::int64_t most = first < 0 || step < 1 || first >= extent ? 0 : (extent - first - 1) / step + 1;
      if (most == 0 || size < 0 || size > most) {
        fail(Exit::bad_data, "a slice of {} {} from {} on, {} apart, of {}; it must lie inside and not be empty", size,
             what, first, step, extent);
      }
      return size > 0 ? size : most;
    };
    Extent3 extents;
    for (const Dim dim : tensor::spatial_dims)
      extents[dim] = count("cells", op.first[dim], op.size[dim], op.step[dim], src()[dim]);
    return with_spatial(src(), count("channels", op.first_channel, op.channels, 1, src().c), extents);
  }

  Shape operator()(const Pad& op) const {
    Extent3 extents;
    for (const Dim dim : tensor::spatial_dims) {
      const std::int64_t most = op.mode == PadMode::reflect ? src()[dim] - 1 : largest_window_number;
      for (const std::int64_t pad : {op.lo[dim], op.hi[dim]}) {
        if (pad < 0 || pad > most)
          fail(Exit::bad_data, "pad is {} in dim {}; it must be from 0 to {}", pad, name_of(dim), most);
      }
      extents[dim] = checked_add(src()[dim], op.lo[dim] + op.hi[dim]);
    }
    return with_spatial(src(), src().c, extents);
  }

  Shape operator()(const Activation& op) const {
    // The derivative is taken from dst, whose sign must be that of src.
    if (!(std::isfinite(op.slope) && op.slope >= 0))
      fail(Exit::bad_data, "slope is {}; it must be at least 0", op.slope);
    return src();
  }

  Shape operator()(const Softmax&) const { return src(); }

  Shape operator()(const Scale& op) const {
    check_finite("factor", op.factor);
    check_finite("offset", op.offset);
    return src();
  }

  Shape operator()(const Dropout& op) const {
    if (!(op.rate >= 0 && op.rate < 1)) fail(Exit::bad_data, "rate is {}; it must be at least 0 and below 1", op.rate);
    return src();
  }

  Shape operator()(const Add&) const {
    for (const Shape& other : srcs) {
      if (other != src()) {
        fail(Exit::bad_data, "add takes sources of one shape, but has {} and {}", tensor::to_text(src()),
             tensor::to_text(other));
      }
    }
    return src();
  }

  Shape operator()(const ChannelShuffle& op) const {
    check_channels("channels", src().c, src().c, op.groups);
    return src();
  }

  Shape operator()(const PixelShuffle& op) const {
    std::int64_t count = 1;
    Extent3 extents;
    for (const Dim dim : tensor::spatial_dims) {
      const std::int64_t factor = op.factor[dim];
      if (factor < 1 || factor > largest_window_number)
        fail(Exit::bad_data, "factor is {} in dim {}; it must be from 1 to {}", factor, name_of(dim),
             largest_window_number);
      count = checked_mul(count, factor);
      if (op.to_channels && src()[dim] % factor != 0) {
        fail(Exit::bad_data, "{} cells in dim {} do not divide into blocks of {}; use a divisor, or pad before it",
             src()[dim], name_of(dim), factor);
      }
      extents[dim] = op.to_channels ? src()[dim] / factor : checked_mul(src()[dim], factor);
    }
    if (op.to_channels) return with_spatial(src(), checked_mul(src().c, count), extents);
    if (src().c % count != 0)
      fail(Exit::bad_data, "{} source channels do not divide into blocks of {} cells; use a multiple", src().c, count);
    return with_spatial(src(), src().c / count, extents);
  }

  Shape operator()(const Concat&) const {
    Shape dst = src();
    dst.c = 0;
    for (const Shape& other : srcs) {
      if (other.n != src().n || tensor::spatial(other) != tensor::spatial(src())) {
        fail(Exit::bad_data, "concat takes sources that differ in channels only, but has {} and {}",
             tensor::to_text(src()), tensor::to_text(other));
      }
      dst.c = checked_add(dst.c, other.c);
    }
    return dst;
  }

  Shape operator()(const Flatten&) const {
    return {src().n, base::checked_product({src().c, src().d, src().h, src().w}), 1, 1, 1};
  }
};

}  // namespace

Shape infer_shape(const Op& op, const std::vector<Shape>& srcs) {
  const OpTraits traits = traits_of(op);
  const bool many = traits.many_sources;
  if (!std::holds_alternative<NoSource>(traits.reads) && (many ? srcs.size() < 2 : srcs.size() != 1)) {
    fail(Exit::bad_data, "{} reads {} sources; it takes {}", name_of(op), srcs.size(), many ? "two or more" : "one");
  }
  for (const Shape& src : srcs) {
    for (const Dim dim : tensor::all_dims) {
      if (src[dim] < 1)
        fail(Exit::bad_data, "the source has {} items in dim {}; at least 1 is needed", src[dim], name_of(dim));
    }
  }
  return std::visit(Rule{srcs}, op);
}

}  // namespace orthant::model
