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

/// Where a task has the first and the second number of an item's statistics.
struct Pair {
  std::size_t first, second;
};

template <class Task>
Pair statistics_of(const Task& task, const Shape& i) {
  const model::SampleGroups& groups = task.groups;
  if (groups.groups == 0) {
    const auto channel = static_cast<std::size_t>(i.c);
    return {channel, static_cast<std::size_t>(task.x.extents.c) + channel};
  }
  const auto first = static_cast<std::size_t>(2 * i.n * groups.groups + (groups.first + i.c) / groups.channels);
  return {first, first + static_cast<std::size_t>(groups.groups)};
}

double number_or(const Numbers& numbers, std::size_t index, double otherwise) {
  return numbers.empty() ? otherwise : numbers.at(index);
}

/// One channel of the gradient: arguments 0 to 6 are the same for NormSumsTask and NormTask.
template <class Task>
struct Gradient {
  const Task& task;
  const Before& before;
  std::size_t channel;

  [[nodiscard]] double gamma() const { return number_or(before[4], channel, 1); }
  [[nodiscard]] double inverse_std(const Shape& i) const { return before[6].at(statistics_of(task, i).second); }
  [[nodiscard]] double normal(const Shape& i) const {
    return (before[2].at(item(task.x, i)) - before[6].at(statistics_of(task, i).first)) * inverse_std(i);
  }
  [[nodiscard]] double dz(const Shape& i) const {
    const double second = before[1].empty() ? 0 : before[1].at(item(diff_y2_layout(task), i));
    const double slope = before[3].empty()
                             ? slope_before(task.activation, gamma() * normal(i) + number_or(before[5], channel, 0))
                             : slope_from(task.activation, before[3].at(item(y_layout(task), i)));
    return (before[0].at(item(diff_y_layout(task), i)) + second) * slope;
  }
};

void forward_sums(const NormSumsTask& task, const Before& before, Arguments now, std::int64_t c) {
  for_each_in_channel(task.x, c, [&](const Shape& i) {
    const double x = before[0].at(item(task.x, i));
    const Pair at = statistics_of(task, i);
    now[1]->at(at.first) += x;
    now[1]->at(at.second) += x * x;
  });
}

void backward_sums(const NormSumsTask& task, const Before& before, Arguments now, std::int64_t c) {
  const auto channel = static_cast<std::size_t>(c);
  const Gradient<NormSumsTask> gradient{task, before, channel};
  const double weight = task.groups.groups > 0 ? gradient.gamma() : 1;
  double sum = 0, product = 0;
  for_each_in_channel(task.x, c, [&](const Shape& i) {
    const double dz = gradient.dz(i), normal = gradient.normal(i);
    const Pair at = statistics_of(task, i);
    sum += dz;
    product += dz * normal;
    now[7]->at(at.first) += weight * dz;
    now[7]->at(at.second) += weight * dz * normal;
    if (now[10]) now[10]->at(item(diff_residual_layout(task), i)) = dz;
  });
  if (now[8]) now[8]->at(channel) = product + (task.accumulate ? before[8].at(channel) : 0);
  if (now[9]) now[9]->at(channel) = sum + (task.accumulate ? before[9].at(channel) : 0);
}

struct Moments {
  double mean, variance;
};

/// Those of which the sums are at a place.
Moments moments_at(const NormTask& task, const Before& before, const Pair& at) {
  const auto count = static_cast<double>(task.statistics_count);
  const double mean = before[5].at(at.first) / count;
  return {mean, std::max(before[5].at(at.second) / count - mean * mean, 0.0)};
}

/// Of all statistics that this rank has a share of, whether it has their channels or not.
void save_moments(const NormTask& task, const Before& before, Arguments now) {
  const bool grouped = task.groups.groups > 0;
  const auto count = static_cast<std::size_t>(grouped ? task.groups.groups : task.x.extents.c);
  const auto items = static_cast<double>(task.statistics_count);
  for (std::size_t i = 0; i < before[5].size() / 2; ++i) {
    const Pair at{i / count * 2 * count + i % count, i / count * 2 * count + i % count + count};
    const auto [mean, variance] = moments_at(task, before, at);
    now[6]->at(at.first) = mean;
    now[6]->at(at.second) = 1 / std::sqrt(variance + task.epsilon);
    if (grouped) continue;
    now[3]->at(i) = (1 - task.momentum) * before[3].at(i) + task.momentum * mean;
    now[4]->at(i) = (1 - task.momentum) * before[4].at(i) + task.momentum * variance * items / (items - 1);
  }
}

Moments moments(const NormTask& task, const Before& before, const Shape& i) {
  const auto channel = static_cast<std::size_t>(i.c);
  if (!task.training) return {before[3].at(channel), before[4].at(channel)};
  return moments_at(task, before, statistics_of(task, i));
}

void forward_channel(const NormTask& task, const Before& before, Arguments now, std::int64_t c) {
  const auto channel = static_cast<std::size_t>(c);
  for_each_in_channel(task.x, c, [&](const Shape& i) {
    const auto [mean, variance] = moments(task, before, i);
    const double normal = (before[0].at(item(task.x, i)) - mean) / std::sqrt(variance + task.epsilon);
    const double residual = task.residual ? before[7].at(item(residual_layout(task), i)) : 0;
    now[8]->at(item(task.y, i)) = activate(
        task.activation, number_or(before[1], channel, 1) * normal + number_or(before[2], channel, 0) + residual);
  });
}

void backward_channel(const NormTask& task, const Before& before, Arguments now, std::int64_t c) {
  const auto channel = static_cast<std::size_t>(c);
  const Gradient<NormTask> gradient{task, before, channel};
  const auto count = static_cast<double>(task.statistics_count);
  const double inside = task.groups.groups > 0 ? 1 : gradient.gamma();  // of the sums: gamma is in those of groups
  for_each_in_channel(task.x, c, [&](const Shape& i) {
    const Pair at = statistics_of(task, i);
    const double sums = before[7].at(at.first) + gradient.normal(i) * before[7].at(at.second);
    const double through_statistics = task.training ? inside * sums / count : 0;
    now[8]->at(item(diff_x_layout(task), i)) =
        gradient.inverse_std(i) * (gradient.gamma() * gradient.dz(i) - through_statistics);
  });
}

}  // namespace

void define(const NormSumsTask& task, const Before& before, Arguments now) {
  Numbers& sums = *now[task.pass == Pass::forward ? 1 : 7];
  std::fill(sums.begin(), sums.end(), 0.0);
  for (std::int64_t c = 0; c < task.x.extents.c; ++c) {
    task.pass == Pass::forward ? forward_sums(task, before, now, c) : backward_sums(task, before, now, c);
  }
}

void define(const NormTask& task, const Before& before, Arguments now) {
  if (task.pass == Pass::forward && task.training) save_moments(task, before, now);
  for (std::int64_t c = 0; c < task.x.extents.c; ++c) {
    task.pass == Pass::forward ? forward_channel(task, before, now, c) : backward_channel(task, before, now, c);
  }
}

void define(const model::PixelNormTask& task, const Before& before, Arguments now) {
  const auto channels = static_cast<double>(task.x.extents.c);
  const bool forward = task.pass == Pass::forward;
  if (!forward && task.affine && !task.accumulate) {
    for (const std::size_t gradient : {5U, 6U}) std::fill(now[gradient]->begin(), now[gradient]->end(), 0.0);
  }
  std::size_t pixel = 0;
  const tensor::Shape& extents = task.x.extents;
  const auto each_channel = [&](Shape i, auto visit) {
    for (i.c = 0; i.c < extents.c; ++i.c) visit(i);
  };
  for_each_pixel(extents, [&](const Shape& first) {
    const std::size_t x_at = forward ? 0 : 1;
    const auto x = [&](const Shape& i) { return before[x_at].at(item(task.x, i)); };
    const auto gamma = [&](const Shape& i) {
      return number_or(before[forward ? 1 : 2], static_cast<std::size_t>(i.c), 1);
    };
    double mean = 0, squares = 0;
    if (forward) {
      each_channel(first, [&](const Shape& i) { mean += x(i) / channels; });
      each_channel(first, [&](const Shape& i) { squares += (x(i) - mean) * (x(i) - mean) / channels; });
      const double scale = 1 / std::sqrt(squares + task.epsilon);
      now[3]->at(2 * pixel) = mean;
      now[3]->at(2 * pixel + 1) = scale;
      each_channel(first, [&](const Shape& i) {
        now[4]->at(item(task.y, i)) =
            (x(i) - mean) * scale * gamma(i) + number_or(before[2], static_cast<std::size_t>(i.c), 0);
      });
    } else {
      mean = before[3].at(2 * pixel);
      const double scale = before[3].at(2 * pixel + 1);
      const auto g = [&](const Shape& i) { return before[0].at(item(task.y, i)); };
      double sum = 0, product = 0;
      each_channel(first, [&](const Shape& i) {
        sum += g(i) * gamma(i) / channels;
        product += g(i) * gamma(i) * (x(i) - mean) * scale / channels;
      });
      each_channel(first, [&](const Shape& i) {
        const double normal = (x(i) - mean) * scale;
        now[4]->at(item(given_or(task.diff_x, task.x), i)) = scale * (g(i) * gamma(i) - sum - normal * product);
        if (!task.affine) return;
        now[5]->at(static_cast<std::size_t>(i.c)) += g(i) * normal;
        now[6]->at(static_cast<std::size_t>(i.c)) += g(i);
      });
    }
    ++pixel;
  });
}

}  // namespace orthant::test
