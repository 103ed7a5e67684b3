#include "tests/support/definitions.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::test {
namespace {

using model::LossKind;
using model::LossSumsTask;
using model::LossTask;
using tensor::Layout;
using tensor::Shape;

/// Where the sums of a term are, and the term.
struct Term {
  model::LossTerm term;
  std::size_t first = 0;
};

std::vector<Term> terms_of(const model::Loss& loss, std::int64_t classes) {
  std::vector<Term> terms;
  std::size_t first = 0;
  for (const model::LossTerm& term : loss.terms) {
    terms.push_back({term, first});
    first += term.kind == LossKind::soft_dice ? 3 * static_cast<std::size_t>(classes) : 1;
  }
  return terms;
}

Numbers softmax(const Layout& layout, const Numbers& output) {
  const Layout dense = tensor::channels_last(layout.extents);
  Numbers result(static_cast<std::size_t>(tensor::volume(layout.extents)));
  for_each_pixel(layout.extents, [&](Shape i) {
    double largest = -INFINITY, sum = 0;
    for (i.c = 0; i.c < layout.extents.c; ++i.c) largest = std::max(largest, output.at(item(layout, i)));
    for (i.c = 0; i.c < layout.extents.c; ++i.c) sum += std::exp(output.at(item(layout, i)) - largest);
    for (i.c = 0; i.c < layout.extents.c; ++i.c) {
      result.at(item(dense, i)) = std::exp(output.at(item(layout, i)) - largest) / sum;
    }
  });
  return result;
}

/// 1 where the label of i's pixel is i's channel. Labels lie one after the other, w fastest.
double hot(const Layout& layout, const Numbers& target, const Shape& i) {
  const Shape& extents = layout.extents;
  const std::int64_t pixel = ((i.n * extents.d + i.d) * extents.h + i.h) * extents.w + i.w;
  return target.at(static_cast<std::size_t>(pixel)) == static_cast<double>(i.c) ? 1 : 0;
}

void add_sums(const LossSumsTask& task, const Term& term, const Before& before, Numbers& sums) {
  const Layout dense = tensor::channels_last(task.output.extents);
  const bool labels = model::takes_labels(task.loss);
  const Numbers p = labels ? softmax(task.output, before[0]) : Numbers{};
  const auto classes = static_cast<std::size_t>(task.output.extents.c);
  for_each_item(task.output.extents, [&](const Shape& i) {
    const double t = labels ? hot(task.output, before[1], i) : before[1].at(item(dense, i));
    const double difference = before[0].at(item(task.output, i)) - t;
    const std::size_t at = term.first + static_cast<std::size_t>(i.c);
    switch (term.term.kind) {
      case LossKind::mean_squared_error: sums.at(term.first) += difference * difference; break;
      case LossKind::mean_absolute_error: sums.at(term.first) += std::abs(difference); break;
      case LossKind::cross_entropy: sums.at(term.first) -= t == 1 ? std::log(p.at(item(dense, i))) : 0; break;
      case LossKind::soft_dice:
        sums.at(at) += p.at(item(dense, i)) * t;
        sums.at(at + classes) += p.at(item(dense, i));
        sums.at(at + 2 * classes) += t;
    }
  });
}

constexpr double smoothing = 1e-5;  // of numerator and denominator

double value_of(const LossTask& task, const Term& term, const Numbers& sums) {
  const auto classes = static_cast<std::size_t>(task.output.extents.c);
  const double sum = sums.at(term.first);
  switch (term.term.kind) {
    case LossKind::mean_squared_error:
    case LossKind::mean_absolute_error: return sum / static_cast<double>(tensor::volume(task.global));
    case LossKind::cross_entropy: return sum / static_cast<double>(tensor::pixels(task.global));
    case LossKind::soft_dice: break;
  }
  double mean = 0;
  for (std::size_t c = term.first; c < term.first + classes; ++c) {
    mean += (2 * sums.at(c) + smoothing) / (sums.at(c + classes) + sums.at(c + 2 * classes) + smoothing);
  }
  return 1 - mean / static_cast<double>(classes);
}

/// The gradient of a term with respect to output item i; targets and p are `dense`.
double slope_of(const LossTask& task, const Term& term, const Before& before, const Numbers& p, const Layout& dense,
                const Shape& i) {
  const double output = before[0].at(item(task.output, i));
  const auto volume = static_cast<double>(tensor::volume(task.global));
  const auto classes = static_cast<std::size_t>(task.output.extents.c);
  if (term.term.kind == LossKind::mean_squared_error) return 2 * (output - before[1].at(item(dense, i))) / volume;
  if (term.term.kind == LossKind::mean_absolute_error) {
    const double difference = output - before[1].at(item(dense, i));
    return (difference > 0 ? 1 : difference < 0 ? -1 : 0) / volume;
  }
  if (term.term.kind == LossKind::cross_entropy) {
    return (p.at(item(dense, i)) - hot(task.output, before[1], i)) / static_cast<double>(tensor::pixels(task.global));
  }
  const auto by_p = [&](const Shape& j) {  // the slope with respect to p
    const std::size_t c = term.first + static_cast<std::size_t>(j.c);
    const double total = before[2].at(c + classes) + before[2].at(c + 2 * classes) + smoothing;
    const double both = before[2].at(c);
    return -(2 * hot(task.output, before[1], j) * total - 2 * both - smoothing) / (total * total) /
           static_cast<double>(classes);
  };
  double product = 0;
  Shape at = i;
  for (at.c = 0; at.c < task.output.extents.c; ++at.c) product += by_p(at) * p.at(item(dense, at));
  return p.at(item(dense, i)) * (by_p(i) - product);
}

}  // namespace

void define(const LossSumsTask& task, const Before& before, Arguments now) {
  std::fill(now[2]->begin(), now[2]->end(), 0.0);
  for (const Term& term : terms_of(task.loss, task.output.extents.c)) add_sums(task, term, before, *now[2]);
}

void define(const LossTask& task, const Before& before, Arguments now) {
  const std::vector<Term> terms = terms_of(task.loss, task.output.extents.c);
  double sum = 0;
  std::size_t index = 0;
  for (const Term& term : terms) {
    now[4]->at(index) = value_of(task, term, before[2]);
    sum += term.term.weight * now[4]->at(index++);
  }
  now[4]->at(index) = sum;
  if (!now[3]) return;
  const Numbers p = model::takes_labels(task.loss) ? softmax(task.output, before[0]) : Numbers{};
  const Layout dense = tensor::channels_last(task.output.extents);
  for_each_item(task.output.extents, [&](const Shape& i) {
    double slope = 0;
    for (const Term& term : terms) slope += term.term.weight * slope_of(task, term, before, p, dense, i);
    now[3]->at(item(task.output, i)) = slope;
  });
}

}  // namespace orthant::test
