#pragma once

#include "orthant/base/random.hpp"
#include "orthant/kernels/primitive.hpp"

namespace orthant::kernels::elementwise {

/// The key of the masks of one layer in one step.
constexpr std::uint64_t dropout_key(const Context& context, int layer) {
  const std::uint64_t key = base::keyed(context.seed, static_cast<std::uint64_t>(context.step));
  return base::keyed(key, static_cast<std::uint64_t>(layer));
}

/// The index of a position in NDHWC order of the whole tensor.
constexpr std::uint64_t dropout_index(const tensor::Shape& global, const tensor::Shape& position) {
  const std::int64_t pixel = ((position.n * global.d + position.d) * global.h + position.h) * global.w + position.w;
  return static_cast<std::uint64_t>(pixel * global.c + position.c);
}

/// True if the item at `position` of the whole tensor is kept: the same on every rank and thread.
constexpr bool dropout_keeps(const model::DropoutTask& task, const Context& context, const tensor::Shape& position) {
  return base::uniform(dropout_key(context, task.layer), dropout_index(task.global, position)) >= task.rate;
}

}  // namespace orthant::kernels::elementwise
