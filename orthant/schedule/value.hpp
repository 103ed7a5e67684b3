#pragma once

#include "orthant/schedule/schedule.hpp"

#include <vector>

namespace orthant::schedule {

constexpr std::int64_t float_bytes = sizeof(float);

/// An item of a list by a node, rank, unit or buffer number.
template <class List>
decltype(auto) at(List& list, int index) {
  return list[static_cast<std::size_t>(index)];
}

/// A box of a tensor in memory.
struct Value {
  int buffer = -1;
  tensor::Box box;  ///< in the whole tensor; Box{} if this rank has nothing
  tensor::Layout layout;
  bool owned = true;  ///< no other value lies in this memory, so the last reader may write over it

  [[nodiscard]] bool empty() const { return tensor::is_empty(box); }
};

/// A part of `value`, in place.
Value part_of(const Value& value, const tensor::Box& box);

/// Items of a buffer of floats as a box with nothing but channels.
Value items_of(int buffer, const tensor::Range& items);

/// What a step reads of a source: boxes side by side in c, as one tensor.
struct Tensor {
  Value all;                 ///< `box` is the first of the boxes
  std::vector<Value> boxes;  ///< each of them
  bool copied = false;       ///< not in the memory of the source

  [[nodiscard]] bool empty() const { return boxes.empty(); }
};

Tensor as_tensor(const Value& value);

/// A node's dst on this rank: the box it owns within a larger one that has room for what its readers want of others.
struct NodeValue {
  Value own;
  Value stored;
  bool filled = false;  ///< the cells of others have arrived
};

/// True if the channels of one pixel follow those of the one before, which convolutions are fast on.
bool has_whole_pixels(const Value& value);

/// The channels-first view of a flattened tensor.
tensor::Layout unflattened(const Value& flat, const tensor::Shape& extents);

}  // namespace orthant::schedule
