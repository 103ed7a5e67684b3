#include "tests/support/definitions.hpp"
#include "tests/support/task_layouts.hpp"

#include <cmath>

namespace orthant::test {
namespace {

using model::NormTask;
using model::Pass;
using tensor::Shape;

/// Calls visit(position) for every item of channel c.
template <class Visit>
void for_each_in_channel(const NormTask& task, std::int64_t c, Visit visit) {
  for_each_pixel(task.x.extents, [&](Shape i) {
    i.c = c;
    visit(i);
  });
}

struct Moments {
  double mean = 0, inverse_std = 0, variance = 0;
};

Moments measure(const NormTask& task, const Numbers& x, std::int64_t c) {
  const auto count = static_cast<double>(task.statistics_count);
  double sum = 0, squares = 0;
  for_each_in_channel(task, c, [&](const Shape& i) { sum += x.at(item(task.x, i)); });
  const double mean = sum / count;
  for_each_in_channel(task, c, [&](const Shape& i) { squares += std::pow(x.at(item(task.x, i)) - mean, 2); });
  return {.mean = mean, .inverse_std = 1 / std::sqrt(squares / count + task.epsilon), .variance = squares / count};
}

void forward_channel(const NormTask& task, const Before& before, Arguments now, std::int64_t c) {
  const auto channel = static_cast<std::size_t>(c);
  const auto channels = static_cast<std::size_t>(task.x.extents.c);
  Moments moments{.mean = before[3].at(channel), .inverse_std = 1 / std::sqrt(before[4].at(channel) + task.epsilon)};
  if (task.training) {
    moments = measure(task, before[0], c);
    const auto count = static_cast<double>(task.statistics_count);
    const double unbiased = moments.variance * count / std::max(count - 1, 1.0);
    now[3]->at(channel) = (1 - task.momentum) * before[3].at(channel) + task.momentum * moments.mean;
    now[4]->at(channel) = (1 - task.momentum) * before[4].at(channel) + task.momentum * unbiased;
    now[5]->at(channel) = moments.mean;
    now[5]->at(channels + channel) = moments.inverse_std;
  }
  for_each_in_channel(task, c, [&](const Shape& i) {
    const double normal = (before[0].at(item(task.x, i)) - moments.mean) * moments.inverse_std;
    const double residual = task.residual ? before[6].at(item(residual_layout(task), i)) : 0;
    now[7]->at(item(task.y, i)) =
        activate(task.activation, before[1].at(channel) * normal + before[2].at(channel) + residual);
  });
}

void backward_channel(const NormTask& task, const Before& before, Arguments now, std::int64_t c) {
  const auto channel = static_cast<std::size_t>(c);
  const double mean = before[6].at(channel);
  const double inverse_std = before[6].at(static_cast<std::size_t>(task.x.extents.c) + channel);
  const double gamma = before[4].at(channel), beta = before[5].at(channel);
  const auto normal = [&](const Shape& i) { return (before[2].at(item(task.x, i)) - mean) * inverse_std; };
  const auto dz = [&](const Shape& i) {
    const double y =
        before[3].empty() ? activate(task.activation, gamma * normal(i) + beta) : before[3].at(item(task.y, i));
    const double second = before[1].empty() ? 0 : before[1].at(item(diff_y2_layout(task), i));
    return (before[0].at(item(diff_y_layout(task), i)) + second) * slope_at(task.activation, y);
  };
  double sum = 0, product = 0;
  for_each_in_channel(task, c, [&](const Shape& i) {
    sum += dz(i);
    product += dz(i) * normal(i);
  });
  now[7]->at(channel) = product;
  now[8]->at(channel) = sum;
  const auto count = static_cast<double>(task.statistics_count);
  for_each_in_channel(task, c, [&](const Shape& i) {
    const double through_statistics = task.training ? sum / count + normal(i) * product / count : 0;
    now[9]->at(item(diff_x_layout(task), i)) = gamma * inverse_std * (dz(i) - through_statistics);
    if (task.residual && now[10]) now[10]->at(item(diff_residual_layout(task), i)) = dz(i);
  });
}

}  // namespace

void define(const NormTask& task, const Before& before, Arguments now) {
  for (std::int64_t c = 0; c < task.x.extents.c; ++c) {
    if (task.pass == Pass::forward) {
      forward_channel(task, before, now, c);
    } else {
      backward_channel(task, before, now, c);
    }
  }
}

}  // namespace orthant::test
