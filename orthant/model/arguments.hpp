#pragma once

#include "orthant/model/argument_positions.hpp"
#include "orthant/model/task.hpp"

#include <vector>

namespace orthant::model {

enum class ItemType { float32, float64, int32, uint8, uint16 };
std::int64_t bytes_of(ItemType type);

/// What a task does with an argument; an update reads and writes it.
enum class Access { none, read, write, update };

/// Whether the argument must be there, may be null, or must be null. One without items may always be null.
enum class Presence { required, optional, null };

/// What a task needs to know of the memory at one position of its list.
struct Argument {
  Position position;
  Access access = Access::read;
  tensor::Layout layout;  ///< in items; a list, as of biases, is the channels of one pixel
  ItemType type = ItemType::float32;
  Presence presence = Presence::required;
  bool in_place = false;  ///< may be the same memory as an argument that is read, item by item
  /// The box of `layout` that the task does not go beyond, and how many of its items it touches: a window may end
  /// before src does, and one that is smaller than its stride leaves cells out.
  tensor::Layout touched = tensor::as_other;
  std::int64_t items = 0;
};

/// The arguments of a task, in the order of their positions. Where a task touches several boxes of one argument, each
/// has an entry.
std::vector<Argument> arguments(const Task& task);
/// How many arguments a task takes.
std::size_t argument_count(const Task& task);

/// One past the last item of a layout; 0 without items.
std::int64_t end_of(const tensor::Layout& layout);

/// An argument's part of bytes_moved(task).
std::int64_t bytes_moved(const Argument& argument);

}  // namespace orthant::model
