#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/model/yaml_ops.hpp"

#include <algorithm>

namespace orthant::model {
namespace {

using tensor::Dim;
using tensor::Extent3;
using tensor::Window;

void check_entries(const LayerText& layer, const std::string& key, const Document& list) {
  if (list.items.size() == static_cast<std::size_t>(layer.spatial_count)) return;
  layer.fields.refuse(list, fmt::format("{} has {} entries; it must be one number or {}, one per spatial dim", key,
                                        list.items.size(), layer.spatial_count));
}

/// As many outputs as inputs divided by the stride, rounded up; the odd cell of padding goes above, as in TensorFlow.
void pad_same(Window& window, const tensor::Shape& src) {
  tensor::check(window);
  for (const Dim dim : tensor::spatial_dims) {
    const std::int64_t last = (src[dim] - 1) / window.stride[dim] * window.stride[dim];
    const std::int64_t total =
        std::max<std::int64_t>(base::checked_add(last, tensor::reach(window, dim)) - src[dim], 0);
    window.pad_lo[dim] = total / 2;
    window.pad_hi[dim] = total - total / 2;
  }
}

void read_pairs(const LayerText& layer, const Document& list, Window& window) {
  check_entries(layer, "pad", list);
  const std::span<const Dim> dims = tensor::named_dims(layer.spatial_count);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Document& pair = list.items[i];
    if (pair.kind != Document::Kind::list || pair.items.size() != 2) {
      layer.fields.refuse(pair, "pad must be numbers throughout or pairs [below, above] throughout");
    }
    window.pad_lo[dims[i]] = layer.fields.integer(pair.items[0], "pad");
    window.pad_hi[dims[i]] = layer.fields.integer(pair.items[1], "pad");
  }
}

}  // namespace

Extent3 read_entries(const LayerText& layer, const std::string& key, const Document& value, std::int64_t depth) {
  Extent3 extent{depth, depth, depth};
  const std::span<const Dim> dims = tensor::named_dims(layer.spatial_count);
  if (value.kind != Document::Kind::list) {
    for (const Dim dim : dims) extent[dim] = layer.fields.integer(value, key);
    return extent;
  }
  check_entries(layer, key, value);
  for (std::size_t i = 0; i < dims.size(); ++i) extent[dims[i]] = layer.fields.integer(value.items[i], key);
  return extent;
}

void read_pad(const LayerText& layer, Window& window) {
  const Document* pad = layer.fields.find("pad");
  if (pad == nullptr) return;
  if (pad->kind == Document::Kind::scalar && pad->scalar == "same") {
    try {
      return pad_same(window, layer.src);
    } catch (const base::Error& error) {
      layer.fields.refuse(*pad, error.what());
    }
  }
  const bool pairs = std::any_of(pad->items.begin(), pad->items.end(),
                                 [](const Document& item) { return item.kind == Document::Kind::list; });
  if (pairs) return read_pairs(layer, *pad, window);
  window.pad_lo = window.pad_hi = read_entries(layer, "pad", *pad, 0);
}

Extent3 read_extent(const LayerText& layer, const std::string& key, std::int64_t depth, std::int64_t fallback) {
  if (const Document* value = layer.fields.find(key)) return read_entries(layer, key, *value, depth);
  Extent3 extent = tensor::cube(depth);
  for (const Dim dim : tensor::named_dims(layer.spatial_count)) extent[dim] = fallback;
  return extent;
}

Window read_window(const LayerText& layer, bool stride_is_kernel) {
  Window window;
  window.size = read_entries(layer, "kernel", layer.fields.need("kernel"), 1);
  window.stride =
      stride_is_kernel && layer.fields.find("stride") == nullptr ? window.size : read_extent(layer, "stride", 1, 1);
  window.dilation = read_extent(layer, "dilation", 1, 1);
  read_pad(layer, window);
  return window;
}

}  // namespace orthant::model
