#pragma once

#include "orthant/model/task.hpp"

#include <vector>

namespace orthant::test {

enum class ItemType { float32, int32, uint8, uint16, float64 };
enum class Access { read, write, update };
/// What a kernel may expect to find in an argument.
/// moments: sums, then as many sums of squares that at least two numbers can have. peaks: items, each with its place.
enum class Content { numbers, positive, labels, taps, moments, peaks };

/// What the comment of a task says about one argument.
struct Argument {
  const char* name = "";
  Access access = Access::read;
  tensor::Layout layout;
  ItemType type = ItemType::float32;
  Content content = Content::numbers;
};

/// The arguments of a task in order, those that may be null included.
std::vector<Argument> arguments_of(const model::Task& task);

std::int64_t bytes_of(ItemType type);
/// The type of a pooling's argmax.
ItemType argmax_type(const tensor::Window& window);
/// One past the largest item of a layout; 0 if it is empty.
std::int64_t end_of(const tensor::Layout& layout);

}  // namespace orthant::test
