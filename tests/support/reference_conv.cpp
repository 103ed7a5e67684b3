#include "tests/support/definitions.hpp"

#include <algorithm>

namespace orthant::test {
namespace {

using model::Pass;
using tensor::Layout;
using tensor::Shape;

/// Sets every item of a box to its start: zero, or the bias of its channel.
void start(Numbers& numbers, const Layout& layout, const Numbers& bias) {
  for_each_item(layout.extents, [&](const Shape& i) {
    numbers.at(item(layout, i)) = bias.empty() ? 0 : bias.at(static_cast<std::size_t>(i.c));
  });
}

void finish(Numbers& numbers, const Layout& layout, const model::Activation& activation) {
  for_each_item(layout.extents, [&](const Shape& i) {
    double& value = numbers.at(item(layout, i));
    value = activate(activation, value);
  });
}

void add_channels(const Numbers& numbers, const Layout& layout, Numbers& sums) {
  for_each_item(layout.extents,
                [&](const Shape& i) { sums.at(static_cast<std::size_t>(i.c)) += numbers.at(item(layout, i)); });
}

/// Calls visit(src, weight, dst) with the places of every product of a convolution.
template <class Visit>
void for_each_product(const model::ConvTask& task, Visit visit) {
  const std::int64_t in = task.src.extents.c / task.groups, out = task.dst.extents.c / task.groups;
  const std::int64_t taps = tensor::taps(task.window);
  for_each_item(task.dst.extents, [&](const Shape& o) {
    const std::int64_t group = o.c / out;
    const std::size_t dst = item(task.dst, o);
    for_each_tap(task.window, o, task.src.extents, [&](Shape s, std::int64_t tap) {
      for (std::int64_t i = 0; i < in; ++i) {
        s.c = group * in + i;
        const std::int64_t weight = ((group * taps + tap) * in + i) * out + o.c % out;
        visit(item(task.src, s), static_cast<std::size_t>(weight), dst);
      }
    });
  });
}

template <class Visit>
void for_each_product(const model::DenseTask& task, Visit visit) {
  for_each_item(task.dst.extents, [&](const Shape& o) {
    for (Shape s{.n = o.n, .c = 0, .d = 0, .h = 0, .w = 0}; s.c < task.src.extents.c; ++s.c) {
      visit(item(task.src, s), static_cast<std::size_t>(o.c * task.src.extents.c + s.c), item(task.dst, o));
    }
  });
}

/// Both tasks are bilinear in src and weights; each pass sums the same products.
template <class Task>
void define_bilinear(const Task& task, const Before& before, Arguments now) {
  switch (task.pass) {
    case Pass::forward:
      start(*now[3], task.dst, before[2]);
      for_each_product(task, [&](std::size_t s, std::size_t w, std::size_t d) {
        now[3]->at(d) += before[0].at(s) * before[1].at(w);
      });
      finish(*now[3], task.dst, task.activation);
      break;
    case Pass::backward_data:
      start(*now[2], task.src, {});
      for_each_product(task, [&](std::size_t s, std::size_t w, std::size_t d) {
        now[2]->at(s) += before[0].at(d) * before[1].at(w);
      });
      break;
    case Pass::backward_weights:
      for (const std::size_t gradient : {2U, 3U}) {
        if (now[gradient] && !task.accumulate) std::fill(now[gradient]->begin(), now[gradient]->end(), 0.0);
      }
      for_each_product(task, [&](std::size_t s, std::size_t w, std::size_t d) {
        now[2]->at(w) += before[0].at(s) * before[1].at(d);
      });
      if (now[3]) add_channels(before[1], task.dst, *now[3]);
      break;
  }
}

}  // namespace

void define(const model::ConvTask& task, const Before& before, Arguments now) { define_bilinear(task, before, now); }

void define(const model::PrepareWeightsTask&, const Before& before, Arguments now) {
  const Numbers& weights = before[0];
  std::fill(now[1]->begin(), now[1]->end(), 0.0);
  std::copy(weights.begin(), weights.end(), now[1]->begin());
}

void define(const model::DenseTask& task, const Before& before, Arguments now) { define_bilinear(task, before, now); }

}  // namespace orthant::test
