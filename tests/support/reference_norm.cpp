#include "tests/support/definitions.hpp"
#include "tests/support/task_layouts.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::test {
namespace {

using model::NormSumsTask;
using model::NormTask;
using model::Pass;
using tensor::Shape;

/// Calls visit(position) for every item of channel c.
template <class Visit>
void for_each_in_channel(const tensor::Layout& layout, std::int64_t c, Visit visit) {
  for_each_pixel(layout.extents, [&](Shape i) {
    i.c = c;
    visit(i);
  });
}

/// One channel of the gradient: arguments 0 to 6 are the same for NormSumsTask and NormTask.
template <class Task>
struct Gradient {
  const Task& task;
  const Before& before;
  std::size_t channel;

  [[nodiscard]] double gamma() const { return before[4].at(channel); }
  [[nodiscard]] double inverse_std() const {
    return before[6].at(static_cast<std::size_t>(task.x.extents.c) + channel);
  }
  [[nodiscard]] double normal(const Shape& i) const {
    return (before[2].at(item(task.x, i)) - before[6].at(channel)) * inverse_std();
  }
  [[nodiscard]] double dz(const Shape& i) const {
    const double y = before[3].empty() ? activate(task.activation, gamma() * normal(i) + before[5].at(channel))
                                       : before[3].at(item(y_layout(task), i));
    const double second = before[1].empty() ? 0 : before[1].at(item(diff_y2_layout(task), i));
    return (before[0].at(item(diff_y_layout(task), i)) + second) * slope_at(task.activation, y);
  }
};

void forward_sums(const NormSumsTask& task, const Before& before, Arguments now, std::int64_t c) {
  double sum = 0, squares = 0;
  for_each_in_channel(task.x, c, [&](const Shape& i) {
    const double x = before[0].at(item(task.x, i));
    sum += x;
    squares += x * x;
  });
  now[1]->at(static_cast<std::size_t>(c)) = sum;
  now[1]->at(static_cast<std::size_t>(task.x.extents.c + c)) = squares;
}

void backward_sums(const NormSumsTask& task, const Before& before, Arguments now, std::int64_t c) {
  const auto channel = static_cast<std::size_t>(c);
  const Gradient<NormSumsTask> gradient{task, before, channel};
  double sum = 0, product = 0;
  for_each_in_channel(task.x, c, [&](const Shape& i) {
    sum += gradient.dz(i);
    product += gradient.dz(i) * gradient.normal(i);
    if (now[10]) now[10]->at(item(diff_residual_layout(task), i)) = gradient.dz(i);
  });
  now[7]->at(channel) = sum;
  now[7]->at(static_cast<std::size_t>(task.x.extents.c) + channel) = product;
  now[8]->at(channel) = product + (task.accumulate ? before[8].at(channel) : 0);
  now[9]->at(channel) = sum + (task.accumulate ? before[9].at(channel) : 0);
}

void forward_channel(const NormTask& task, const Before& before, Arguments now, std::int64_t c) {
  const auto channel = static_cast<std::size_t>(c);
  const auto channels = static_cast<std::size_t>(task.x.extents.c);
  double mean = before[3].at(channel), variance = before[4].at(channel);
  if (task.training) {
    const auto count = static_cast<double>(task.statistics_count);
    mean = before[5].at(channel) / count;
    variance = std::max(before[5].at(channels + channel) / count - mean * mean, 0.0);
    now[3]->at(channel) = (1 - task.momentum) * before[3].at(channel) + task.momentum * mean;
    now[4]->at(channel) = (1 - task.momentum) * before[4].at(channel) + task.momentum * variance * count / (count - 1);
    now[6]->at(channel) = mean;
    now[6]->at(channels + channel) = 1 / std::sqrt(variance + task.epsilon);
  }
  for_each_in_channel(task.x, c, [&](const Shape& i) {
    const double normal = (before[0].at(item(task.x, i)) - mean) / std::sqrt(variance + task.epsilon);
    const double residual = task.residual ? before[7].at(item(residual_layout(task), i)) : 0;
    now[8]->at(item(task.y, i)) =
        activate(task.activation, before[1].at(channel) * normal + before[2].at(channel) + residual);
  });
}

void backward_channel(const NormTask& task, const Before& before, Arguments now, std::int64_t c) {
  const auto channel = static_cast<std::size_t>(c);
  const Gradient<NormTask> gradient{task, before, channel};
  const auto count = static_cast<double>(task.statistics_count);
  const double sum = before[7].at(channel);
  const double product = before[7].at(static_cast<std::size_t>(task.x.extents.c) + channel);
  for_each_in_channel(task.x, c, [&](const Shape& i) {
    const double through_statistics = task.training ? (sum + gradient.normal(i) * product) / count : 0;
    now[8]->at(item(diff_x_layout(task), i)) =
        gradient.gamma() * gradient.inverse_std() * (gradient.dz(i) - through_statistics);
  });
}

}  // namespace

void define(const NormSumsTask& task, const Before& before, Arguments now) {
  for (std::int64_t c = 0; c < task.x.extents.c; ++c) {
    task.pass == Pass::forward ? forward_sums(task, before, now, c) : backward_sums(task, before, now, c);
  }
}

void define(const NormTask& task, const Before& before, Arguments now) {
  for (std::int64_t c = 0; c < task.x.extents.c; ++c) {
    task.pass == Pass::forward ? forward_channel(task, before, now, c) : backward_channel(task, before, now, c);
  }
}

}  // namespace orthant::test
