#include "tests/support/definitions.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::test {
namespace {

using model::LossKind;
using model::LossTask;
using tensor::Shape;

/// A term's value, and its gradient added to `gradient` (dense channels-last) with the term's weight.
using Term = double (*)(const LossTask& task, const Numbers& output, const Numbers& target, double weight,
                        Numbers& gradient);

double values_term(const LossTask& task, const Numbers& output, const Numbers& target, double weight, Numbers& gradient,
                   bool squared) {
  const tensor::Layout dense = tensor::channels_last(task.output.extents);
  const auto count = static_cast<double>(tensor::volume(task.global));
  double sum = 0;
  for_each_item(task.output.extents, [&](const Shape& i) {
    const double difference = output.at(item(task.output, i)) - target.at(item(dense, i));
    const double sign = difference > 0 ? 1 : difference < 0 ? -1 : 0;
    sum += squared ? difference * difference : std::abs(difference);
    gradient.at(item(dense, i)) += weight * (squared ? 2 * difference : sign) / count;
  });
  return sum / count;
}

double squared_error(const LossTask& task, const Numbers& output, const Numbers& target, double weight,
                     Numbers& gradient) {
  return values_term(task, output, target, weight, gradient, true);
}

double absolute_error(const LossTask& task, const Numbers& output, const Numbers& target, double weight,
                      Numbers& gradient) {
  return values_term(task, output, target, weight, gradient, false);
}

Numbers softmax(const LossTask& task, const Numbers& output) {
  const tensor::Layout dense = tensor::channels_last(task.output.extents);
  Numbers result(static_cast<std::size_t>(tensor::volume(task.output.extents)));
  for_each_pixel(task.output.extents, [&](Shape i) {
    double largest = -INFINITY, sum = 0;
    for (i.c = 0; i.c < task.output.extents.c; ++i.c) largest = std::max(largest, output.at(item(task.output, i)));
    for (i.c = 0; i.c < task.output.extents.c; ++i.c) sum += std::exp(output.at(item(task.output, i)) - largest);
    for (i.c = 0; i.c < task.output.extents.c; ++i.c) {
      result.at(item(dense, i)) = std::exp(output.at(item(task.output, i)) - largest) / sum;
    }
  });
  return result;
}

/// 1 where the label of i's pixel is i's channel.
double hot(const LossTask& task, const Numbers& target, Shape i) {
  const std::int64_t channel = i.c;
  Shape one_channel = task.output.extents;
  one_channel.c = 1;
  i.c = 0;
  return target.at(item(tensor::channels_last(one_channel), i)) == static_cast<double>(channel) ? 1 : 0;
}

double cross_entropy(const LossTask& task, const Numbers& output, const Numbers& target, double weight,
                     Numbers& gradient) {
  const tensor::Layout dense = tensor::channels_last(task.output.extents);
  const auto count = static_cast<double>(tensor::pixels(task.global));
  const Numbers p = softmax(task, output);
  double sum = 0;
  for_each_item(task.output.extents, [&](const Shape& i) {
    const double probability = p.at(item(dense, i)), wanted = hot(task, target, i);
    if (wanted == 1) sum -= std::log(probability);
    gradient.at(item(dense, i)) += weight * (probability - wanted) / count;
  });
  return sum / count;
}

double soft_dice(const LossTask& task, const Numbers& output, const Numbers& target, double weight, Numbers& gradient) {
  const tensor::Layout dense = tensor::channels_last(task.output.extents);
  const auto classes = static_cast<std::size_t>(task.output.extents.c);
  const Numbers p = softmax(task, output);
  constexpr double smoothing = 1e-5;  // of numerator and denominator
  Numbers both(classes, 0), total(classes, 0);
  for_each_item(task.output.extents, [&](const Shape& i) {
    const double probability = p.at(item(dense, i)), wanted = hot(task, target, i);
    both.at(static_cast<std::size_t>(i.c)) += probability * wanted;
    total.at(static_cast<std::size_t>(i.c)) += probability + wanted;
  });
  double mean = 0;
  for (std::size_t c = 0; c < classes; ++c) {
    total[c] += smoothing;
    mean += (2 * both[c] + smoothing) / total[c] / static_cast<double>(classes);
  }
  for_each_pixel(task.output.extents, [&](Shape i) {
    const auto slope = [&](const Shape& at) {  // of the loss with respect to p
      const auto c = static_cast<std::size_t>(at.c);
      return -(2 * hot(task, target, at) * total[c] - 2 * both[c] - smoothing) / (total[c] * total[c]) /
             static_cast<double>(classes);
    };
    double product = 0;
    for (i.c = 0; i.c < task.output.extents.c; ++i.c) product += slope(i) * p.at(item(dense, i));
    for (i.c = 0; i.c < task.output.extents.c; ++i.c) {
      gradient.at(item(dense, i)) += weight * p.at(item(dense, i)) * (slope(i) - product);
    }
  });
  return 1 - mean;
}

Term term_of(LossKind kind) {
  switch (kind) {
    case LossKind::mean_squared_error: return squared_error;
    case LossKind::mean_absolute_error: return absolute_error;
    case LossKind::cross_entropy: return cross_entropy;
    case LossKind::soft_dice: break;
  }
  return soft_dice;
}

}  // namespace

void define(const LossTask& task, const Before& before, Arguments now) {
  Numbers gradient(static_cast<std::size_t>(tensor::volume(task.output.extents)), 0.0);
  double sum = 0;
  std::size_t index = 0;
  for (const model::LossTerm& term : task.loss.terms) {
    const double value = term_of(term.kind)(task, before[0], before[1], term.weight, gradient);
    now[3]->at(index++) = value;
    sum += term.weight * value;
  }
  now[3]->at(index) = sum;
  if (!now[2]) return;
  const tensor::Layout dense = tensor::channels_last(task.output.extents);
  for_each_item(task.output.extents,
                [&](const Shape& i) { now[2]->at(item(task.output, i)) = gradient.at(item(dense, i)); });
}

}  // namespace orthant::test
