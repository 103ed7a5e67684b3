#include "orthant/schedule/value.hpp"

namespace orthant::schedule {

Value part_of(const Value& value, const tensor::Box& box) {
  Value part = value;
  part.box = box;
  part.layout = tensor::box_of(value.layout, box, value.box.lo);
  return part;
}

Value items_of(int buffer, const tensor::Range& items) {
  const tensor::Box box{.lo = {0, items.lo, 0, 0, 0}, .hi = {1, items.hi, 1, 1, 1}};
  tensor::Layout layout = tensor::channels_last(tensor::extents_of(box));
  layout.offset = items.lo;
  return {.buffer = buffer, .box = box, .layout = layout};
}

Tensor as_tensor(const Value& value) {
  if (value.empty()) return {};
  return {.all = value, .boxes = {value}};
}

bool has_whole_pixels(const Value& value) {
  const tensor::Layout& layout = value.layout;
  return layout.extents.w == 1 || layout.strides.w == layout.extents.c;
}

tensor::Layout unflattened(const Value& flat, const tensor::Shape& extents) {
  tensor::Layout layout = tensor::channels_first(extents);
  layout.strides.n = flat.layout.strides.n;
  layout.offset = flat.layout.offset;
  return layout;
}

}  // namespace orthant::schedule
