#include "tests/support/definitions.hpp"

#include <cmath>

namespace orthant::test {
namespace {

using model::Pass;
using tensor::Shape;

/// What an average divides by at dst position `i`.
double divisor(const model::PoolTask& task, const Shape& i) {
  if (task.count_include_pad) return static_cast<double>(tensor::taps(task.window));
  Shape global = task.src.extents;
  tensor::Window window = task.window;
  if (task.global_src != tensor::cube(0)) {
    for (const tensor::Dim dim : tensor::spatial_dims) {
      global[dim] = task.global_src[dim];
      window.pad_lo[dim] -= task.first_src[dim];
    }
  }
  double count = 0;
  for_each_tap(window, i, global, [&](const Shape&, std::int64_t) { ++count; });
  return count;
}

void forward(const model::PoolTask& task, const Before& before, Arguments now) {
  for_each_item(task.dst.extents, [&](const Shape& i) {
    double largest = -INFINITY, sum = 0;
    std::int64_t argmax = 0;
    for_each_tap(task.window, i, task.src.extents, [&](const Shape& s, std::int64_t tap) {
      const double value = before[0].at(item(task.src, s));
      sum += value;
      if (value > largest) argmax = tap;
      largest = std::max(largest, value);
    });
    const bool is_max = task.kind == model::PoolKind::max;
    now[1]->at(item(task.dst, i)) = is_max ? largest : sum / divisor(task, i);
    if (is_max && now[2]) now[2]->at(item(tensor::channels_last(task.dst.extents), i)) = static_cast<double>(argmax);
  });
}

/// The gradient of src without the activation, on a dense box of its own.
Numbers spread(const model::PoolTask& task, const Before& before, const tensor::Layout& dense) {
  Numbers sums(static_cast<std::size_t>(tensor::volume(task.src.extents)), 0.0);
  for_each_item(task.dst.extents, [&](const Shape& i) {
    const double diff = before[0].at(item(task.dst, i));
    const bool is_max = task.kind == model::PoolKind::max;
    const double chosen = is_max ? before[1].at(item(tensor::channels_last(task.dst.extents), i)) : 0;
    const double share = is_max ? diff : diff / divisor(task, i);
    for_each_tap(task.window, i, task.src.extents, [&](const Shape& s, std::int64_t tap) {
      if (!is_max || static_cast<double>(tap) == chosen) sums.at(item(dense, s)) += share;
    });
  });
  return sums;
}

}  // namespace

void define(const model::PoolTask& task, const Before& before, Arguments now) {
  if (task.pass == Pass::forward) return forward(task, before, now);
  const tensor::Layout dense = tensor::channels_last(task.src.extents);
  const Numbers sums = spread(task, before, dense);
  for_each_item(task.src.extents, [&](const Shape& i) {
    const std::size_t place = item(task.src, i);
    const double slope = slope_at(task.activation, before[2].empty() ? 0 : before[2].at(place));
    now[3]->at(place) = (task.accumulate ? before[3].at(place) : 0) + sums.at(item(dense, i)) * slope;
  });
}

}  // namespace orthant::test
