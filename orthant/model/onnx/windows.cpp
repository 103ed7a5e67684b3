#include "orthant/model/onnx/importer.hpp"
#include "orthant/model/onnx/node_view.hpp"

#include "orthant/base/error.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::model::onnx {

using base::Exit;
using base::fail;
using tensor::Dim;
using tensor::Extent3;
using tensor::Shape;
using tensor::Window;
using Role = Parameter::Role;

namespace {

constexpr std::int64_t largest = std::int64_t{1} << 31;

std::vector<Dim> dims_of(int spatial_count) {
  return {tensor::spatial_dims.end() - spatial_count, tensor::spatial_dims.end()};
}

}  // namespace

/// One number per spatial dim of the file; the dims that it does not have get `fallback`.
Extent3 Importer::spatial_list(const Extents& values, std::int64_t fallback) const {
  Extent3 result = tensor::cube(fallback);
  if (values.empty()) return result;
  if (static_cast<int>(values.size()) != spatial_count_)
    fail(Exit::bad_data, "{} numbers where the network has {} spatial dims", values.size(), spatial_count_);
  std::size_t next = 0;
  for (const Dim dim : dims_of(spatial_count_)) {
    if (std::abs(values[next]) > largest) fail(Exit::bad_data, "the number {} in a window", values[next]);
    result[dim] = values[next++];
  }
  return result;
}

Window Importer::window_of(const OpNode& node, const Extents& kernel, const Shape& src) const {
  Window window{.size = spatial_list(kernel, 1),
                .stride = spatial_list(list_of(node, "strides"), 1),
                .dilation = spatial_list(list_of(node, "dilations"), 1)};
  tensor::check(window);
  const std::string automatic = text_of(node, "auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    for (const Dim dim : dims_of(spatial_count_)) {
      const std::int64_t outputs = (src[dim] + window.stride[dim] - 1) / window.stride[dim];
      const std::int64_t total =
          std::max<std::int64_t>(0, (outputs - 1) * window.stride[dim] + tensor::reach(window, dim) - src[dim]);
      const bool more_above = automatic == "SAME_UPPER";
      window.pad_lo[dim] = more_above ? total / 2 : total - total / 2;
      window.pad_hi[dim] = total - window.pad_lo[dim];
    }
  } else if (automatic == "NOTSET") {
    const Extents pads = list_of(node, "pads");
    if (!pads.empty()) {
      if (pads.size() != 2 * static_cast<std::size_t>(spatial_count_))
        fail(Exit::bad_data, "{} pads where the network has {} spatial dims", pads.size(), spatial_count_);
      const auto middle = pads.begin() + spatial_count_;
      window.pad_lo = spatial_list({pads.begin(), middle}, 0);
      window.pad_hi = spatial_list({middle, pads.end()}, 0);
    }
  } else if (automatic != "VALID") {
    fail(Exit::bad_data, "auto_pad '{}' is not known", automatic);
  }
  tensor::check(window);
  return window;
}

/// What a padding reads, its cells put into the window, if outside of the source both have the same number. With
/// `only_bare`, only if the window has no padding of its own.
int Importer::without_pad(int item, Window& window, double outside, bool only_bare) const {
  const Extent3* lo = nullptr;
  const Extent3* hi = nullptr;
  if (const auto* pad = as<Pad>(item); pad != nullptr && pad->mode == PadMode::zeros && outside == 0) {
    lo = &pad->lo;
    hi = &pad->hi;
  }
  if (const Symbol* low = symbol(item, "low_pad"); low != nullptr && outside < 0) {
    lo = &low->lo;
    hi = &low->hi;
  }
  if (lo == nullptr) return item;
  if (only_bare && (window.pad_lo != tensor::cube(0) || window.pad_hi != tensor::cube(0))) return item;
  Window wider = window;
  for (const Dim dim : tensor::spatial_dims) {
    wider.pad_lo[dim] += (*lo)[dim];
    wider.pad_hi[dim] += (*hi)[dim];
  }
  window = wider;
  return src(item);
}

Value Importer::conv(const OpNode& node, const Arguments& arguments) {
  View source = plain_source(arguments, 0);
  const Constant& weight = constant(arguments, 1);
  if (weight.extents.size() != static_cast<std::size_t>(spatial_count_) + 2)
    fail(Exit::bad_data, "its weights have {} dims in a {}-D network", weight.extents.size(), spatial_count_);
  const Extents kernel{weight.extents.begin() + 2, weight.extents.end()};
  Conv op{.filters = weight.extents[0],
          .window = window_of(node, kernel, shape(source.item)),
          .groups = integer_of(node, "group", 1),
          .bias = given(arguments, 2)};
  if (op.groups < 1 || weight.extents[1] != shape(source.item).c / op.groups)
    fail(Exit::bad_data, "its weights take {} channels in {} groups and the source has {}", weight.extents[1],
         op.groups, shape(source.item).c);
  source.item = without_pad(source.item, op.window, 0, false);
  std::vector<Binding> bindings{{Role::weight, weight, true}};
  if (op.bias) bindings.push_back({Role::bias, constant(arguments, 2), true});
  const int item = put(Op(op), {source.item}, std::move(bindings));
  return plain_view(item, shape(item), spatial_count_ + 2);
}

Value Importer::conv_transpose(const OpNode& node, const Arguments& arguments) {
  const View source = plain_source(arguments, 0);
  const Constant& weight = constant(arguments, 1);
  if (weight.extents.size() != static_cast<std::size_t>(spatial_count_) + 2)
    fail(Exit::bad_data, "its weights have {} dims in a {}-D network", weight.extents.size(), spatial_count_);
  if (has(node, "output_shape")) fail(Exit::bad_data, "output_shape is not supported; use pads and output_padding");
  if (const std::string automatic = text_of(node, "auto_pad", "NOTSET"); automatic != "NOTSET" && automatic != "VALID")
    fail(Exit::bad_data, "auto_pad '{}' is not supported; use pads", automatic);
  const Extents kernel{weight.extents.begin() + 2, weight.extents.end()};
  const std::int64_t groups = integer_of(node, "group", 1);
  if (groups < 1 || weight.extents[1] > largest || groups > largest || weight.extents[0] != shape(source.item).c)
    fail(Exit::bad_data, "its weights take {} channels and the source has {}", weight.extents[0], shape(source.item).c);
  ConvTranspose op{.filters = weight.extents[1] * groups,
                   .window = window_of(node, kernel, shape(source.item)),
                   .output_padding = spatial_list(list_of(node, "output_padding"), 0),
                   .groups = groups,
                   .bias = given(arguments, 2)};
  std::vector<Binding> bindings{{Role::weight, weight, true}};
  if (op.bias) bindings.push_back({Role::bias, constant(arguments, 2), true});
  const int item = put(Op(op), {source.item}, std::move(bindings));
  return plain_view(item, shape(item), spatial_count_ + 2);
}

Value Importer::pool(const OpNode& node, const Arguments& arguments) {
  View source = plain_source(arguments, 0);
  const bool maximum = node.op == "MaxPool";
  Window window = window_of(node, list_of(node, "kernel_shape"), shape(source.item));
  bool counts = integer_of(node, "count_include_pad", 0) != 0;
  if (integer_of(node, "storage_order", 0) != 0) fail(Exit::bad_data, "storage_order is not supported");
  // What a ceiling adds is a padding above, in which PyTorch lets no window begin, and which no mean counts.
  Extent3 more = tensor::cube(0);
  if (integer_of(node, "ceil_mode", 0) != 0) {
    for (const Dim dim : tensor::spatial_dims) {
      const std::int64_t room =
          shape(source.item)[dim] + window.pad_lo[dim] + window.pad_hi[dim] - tensor::reach(window, dim);
      if (room < 0) continue;
      std::int64_t last = (room + window.stride[dim] - 1) / window.stride[dim] * window.stride[dim];
      if (last >= shape(source.item)[dim] + window.pad_lo[dim]) last -= window.stride[dim];
      more[dim] = std::max<std::int64_t>(0, last - room);
    }
  }
  const bool padded = window.pad_lo != tensor::cube(0) || window.pad_hi != tensor::cube(0);
  if (!maximum && counts && padded && more != tensor::cube(0)) {
    source.item = put(Op(Pad{.mode = PadMode::zeros, .lo = window.pad_lo, .hi = window.pad_hi}), {source.item});
    window.pad_lo = window.pad_hi = tensor::cube(0);
  }
  if (!maximum && more == tensor::cube(0)) {
    // Padding in front of a pooling without one counts, as exporters write it.
    const int inner = without_pad(source.item, window, 0, true);
    if (inner != source.item) counts = true;
    try {
      infer_shape(Op(Pool{.kind = PoolKind::average, .window = window, .count_include_pad = counts}), {shape(inner)});
      source.item = inner;
    } catch (const base::Error&) {
      window.pad_lo = window.pad_hi = tensor::cube(0);
    }
  }
  if (maximum) source.item = without_pad(source.item, window, -1, false);
  for (const Dim dim : tensor::spatial_dims) window.pad_hi[dim] += more[dim];
  const bool bare =
      window.pad_lo == tensor::cube(0) && window.pad_hi == tensor::cube(0) && window.dilation == tensor::cube(1);
  const bool all = bare && window.size == tensor::spatial(shape(source.item));
  if (!maximum && more != tensor::cube(0)) counts = false;
  int item = source.item;
  if (all) {
    item = maximum ? max_over_space(item) : mean_over_space(item);
  } else if (!(bare && window.size == tensor::cube(1) && window.stride == tensor::cube(1))) {
    item = put(
        Op(Pool{.kind = maximum ? PoolKind::max : PoolKind::average, .window = window, .count_include_pad = counts}),
        {item});
  }
  return plain_view(item, shape(item), spatial_count_ + 2);
}

/// The largest cell of each channel.
int Importer::max_over_space(int item) {
  if (tensor::spatial(shape(item)) == tensor::cube(1)) return item;
  return put(Op(GlobalMaxPool{}), {item});
}

Value Importer::pad(const OpNode& node, const Arguments& arguments) {
  const View& given_source = view(arguments, 0);
  const std::string mode = text_of(node, "mode", "constant");
  const std::size_t rank = given_source.dims.size();
  Extents pads = has(node, "pads") ? list_of(node, "pads") : integers_of(constant(arguments, 1));
  double value = number_of(node, "value", 0);
  if (given(arguments, 2)) value = single_number(constant(arguments, 2)).value_or(0);
  if (given(arguments, 3)) {
    const Extents axes = integers_of(constant(arguments, 3));
    if (pads.size() != 2 * axes.size()) fail(Exit::bad_data, "{} pads for {} axes", pads.size(), axes.size());
    Extents all(2 * rank, 0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto dim = static_cast<std::size_t>(dim_of(axes[i], rank));
      all[dim] = pads[i];
      all[rank + dim] = pads[axes.size() + i];
    }
    pads = all;
  }
  if (pads.size() != 2 * rank) fail(Exit::bad_data, "{} pads for {} dims", pads.size(), rank);
  if (std::all_of(pads.begin(), pads.end(), [](std::int64_t one) { return one == 0; })) return given_source;
  const View source = plain_source(arguments, 0);
  if (pads[0] != 0 || pads[rank] != 0 || pads[1] != 0 || pads[rank + 1] != 0)
    fail(Exit::bad_data,
         "padding of samples or channels is not supported; use a convolution of one tap for more channels");
  Pad op{.mode = mode == "reflect" ? PadMode::reflect
                 : mode == "edge"  ? PadMode::edge
                                   : PadMode::zeros,
         .lo = spatial_list({pads.begin() + 2, pads.begin() + static_cast<std::ptrdiff_t>(rank)}, 0),
         .hi = spatial_list({pads.begin() + static_cast<std::ptrdiff_t>(rank) + 2, pads.end()}, 0)};
  if (mode != "constant" && mode != "reflect" && mode != "edge")
    fail(Exit::bad_data, "padding by '{}' is not supported; zeros, reflect and edge are", mode);
  int item = source.item;
  // Below zero cells are cut off.
  Slice crop;
  bool crops = false;
  for (const Dim dim : tensor::spatial_dims) {
    const std::int64_t below = std::min<std::int64_t>(op.lo[dim], 0);
    const std::int64_t above = std::min<std::int64_t>(op.hi[dim], 0);
    crop.first[dim] = -below;
    crop.size[dim] = shape(item)[dim] + below + above;
    if (crop.size[dim] < 1)
      fail(Exit::bad_data, "a padding of {} and {} leaves nothing of {} cells", op.lo[dim], op.hi[dim],
           shape(item)[dim]);
    crops = crops || below != 0 || above != 0;
    op.lo[dim] = std::max<std::int64_t>(op.lo[dim], 0);
    op.hi[dim] = std::max<std::int64_t>(op.hi[dim], 0);
  }
  if (crops) item = put(Op(crop), {item});
  if (mode == "constant" && value <= -1e30) {
    const Shape dst = infer_shape(Op(op), {shape(item)});
    item = put(Symbol{.op = "low_pad",
                      .trouble = "padding with the lowest number is supported only before a max pool",
                      .lo = op.lo,
                      .hi = op.hi},
               {item}, dst);
  } else if (mode == "constant" && value != 0) {
    fail(Exit::bad_data, "padding with {} is not supported; use zeros", value);
  } else if (op.lo != tensor::cube(0) || op.hi != tensor::cube(0)) {
    item = put(Op(op), {item});
  }
  return plain_view(item, shape(item), static_cast<int>(rank));
}

Value Importer::resize(const OpNode& node, const Arguments& arguments) {
  const bool old = node.op == "Upsample" || file_.opset < 11;
  const View source = plain_source(arguments, 0);
  const std::size_t rank = source.dims.size();
  const Extents have = extents_of(source);
  const std::string mode = text_of(node, "mode", "nearest");
  const std::string place = text_of(node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  std::vector<double> factors =
      old ? (given(arguments, 1) ? numbers_of(constant(arguments, 1)) : std::vector<double>()) : std::vector<double>();
  if (old && factors.empty()) {
    for (const float one : list_of_floats(node, "scales")) factors.push_back(one);
  }
  if (!old && given(arguments, 2)) factors = numbers_of(constant(arguments, 2));
  Extents sizes = !old && given(arguments, 3) ? integers_of(constant(arguments, 3)) : Extents{};
  if (const Extents axes = list_of(node, "axes"); !axes.empty()) {
    std::vector<double> all_factors(rank, 1);
    Extents all_sizes = have;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto dim = static_cast<std::size_t>(dim_of(axes[i], rank));
      if (i < factors.size()) all_factors[dim] = factors[i];
      if (i < sizes.size()) all_sizes[dim] = sizes[i];
    }
    if (!factors.empty()) factors = all_factors;
    if (!sizes.empty()) sizes = all_sizes;
  }
  if (sizes.size() != rank && factors.size() != rank)
    fail(Exit::bad_data, "its sizes or scales do not fit a source of {} dims", rank);
  if (text_of(node, "keep_aspect_ratio_policy", "stretch") != "stretch")
    fail(Exit::bad_data, "only the policy 'stretch' is supported");
  Resize op;
  bool changes = false;
  bool whole = true;
  for (std::size_t i = 0; i < rank; ++i) {
    const bool by_size = !sizes.empty();
    const std::int64_t size = by_size ? sizes[i] : 0;
    const double factor = by_size ? 0 : factors[i];
    const bool same = by_size ? size == have[i] : factor == 1;
    if (i < 2) {
      if (!same) fail(Exit::bad_data, "samples or channels are resized; only space is supported");
      continue;
    }
    const std::size_t at = i + 3 - rank;
    const Dim dim = tensor::spatial_dims.at(at);
    changes = changes || !same;
    whole = whole && (by_size ? size % have[i] == 0 : factor == std::floor(factor));
    if (by_size) {
      op.size[dim] = size;
    } else {
      op.factor.at(at) = factor;
    }
  }
  for (std::size_t at = 0; at < 5 - rank; ++at) op.factor.at(at) = 1;
  if (!changes) return source;
  if (mode == "nearest") {
    const std::string rounding = text_of(node, "nearest_mode", old ? "floor" : "round_prefer_floor");
    const bool torch = place == "asymmetric" && rounding == "floor";
    const bool same_cells = whole &&
                            (place == "half_pixel" || place == "pytorch_half_pixel" || place == "asymmetric") &&
                            !(place == "asymmetric" && rounding != "floor");
    if (!torch && !same_cells)
      fail(Exit::bad_data,
           "nearest with '{}' and '{}' is not supported; PyTorch's interpolate makes 'asymmetric' and 'floor'", place,
           rounding);
  } else if (mode == "linear") {
    op.mode = ResizeMode::linear;
    if (old)
      fail(Exit::bad_data, "linear resizing means something else in opset {}; export with opset 11 or later",
           file_.opset);
    if (place != "align_corners" && place != "half_pixel" && place != "pytorch_half_pixel")
      fail(Exit::bad_data, "linear with '{}' is not supported; align_corners and half_pixel are", place);
    op.align_corners = place == "align_corners";
    if (integer_of(node, "antialias", 0) != 0) fail(Exit::bad_data, "antialias is not supported");
  } else {
    fail(Exit::bad_data, "'{}' is not supported; nearest and linear are", mode);
  }
  const int item = put(Op(op), {source.item});
  return plain_view(item, shape(item), static_cast<int>(rank));
}

}  // namespace orthant::model::onnx
