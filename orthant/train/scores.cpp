#include "orthant/train/scores.hpp"

#include "orthant/comm/ordered_sum.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace orthant::train {
namespace {

using model::LossKind;

constexpr double dice_smoothing = 1e-5;  ///< of LossKind::soft_dice

/// What is summed per channel of values.
enum ValueSum : std::size_t { squared, absolute, target, target_squared, value_sums };
/// What is summed per class; the last item of all sums is the cross-entropy.
enum ClassSum : std::size_t { both, predicted, actual, soft_both, soft_predicted, class_sums };

/// The same item of every channel.
double over_channels(std::span<const double> sums, std::size_t item, std::size_t per_channel) {
  double sum = 0;
  for (std::size_t at = item; at < sums.size(); at += per_channel) sum += sums[at];
  return sum;
}

void score_values(Scores& scores, std::span<const double> sums, double pixels) {
  for (std::size_t at = 0; at < sums.size(); at += value_sums) {
    const double mean = sums[at + target] / pixels;
    scores.channels.push_back({.mean_squared_error = sums[at + squared] / pixels,
                               .mean_absolute_error = sums[at + absolute] / pixels,
                               .target_mean = mean,
                               .target_variance = std::max(0.0, sums[at + target_squared] / pixels - mean * mean)});
  }
  const double items = pixels * static_cast<double>(scores.channels.size());
  scores.mean_squared_error = over_channels(sums, squared, value_sums) / items;
  scores.mean_absolute_error = over_channels(sums, absolute, value_sums) / items;
}

void score_labels(Scores& scores, std::span<const double> sums, double pixels) {
  scores.accuracy = over_channels(sums, both, class_sums) / pixels;
  double sum = 0;
  int count = 0;
  for (std::size_t at = 0; at < sums.size(); at += class_sums) {
    const double size = sums[at + predicted] + sums[at + actual];
    scores.dice.push_back(size > 0 ? std::optional(2 * sums[at + both] / size) : std::nullopt);
    if (size == 0) continue;
    sum += *scores.dice.back();
    ++count;
  }
  scores.mean_dice = count > 0 ? sum / count : 0;
}

double soft_dice_loss(std::span<const double> sums) {
  double sum = 0;
  for (std::size_t at = 0; at < sums.size(); at += class_sums) {
    sum +=
        (2 * sums[at + soft_both] + dice_smoothing) / (sums[at + soft_predicted] + sums[at + actual] + dice_smoothing);
  }
  return 1 - sum * static_cast<double>(class_sums) / static_cast<double>(sums.size());
}

}  // namespace

std::optional<double> ValueScore::explained() const {
  if (target_variance <= 0) return std::nullopt;
  return 1 - mean_squared_error / target_variance;
}

ScoreSums::ScoreSums(const model::Graph& graph)
    : loss_(graph.loss),
      labels_(model::takes_labels(graph.loss)),
      channels_(static_cast<std::size_t>(graph.nodes.back().shape.c)),
      pixels_per_sample_(tensor::pixels(graph.nodes.back().shape) / graph.nodes.back().shape.n),
      sums_(labels_ ? class_sums * channels_ + 1 : value_sums * channels_),
      probabilities_(channels_) {}

void ScoreSums::add_values(std::span<const float> prediction, std::span<const float> wanted) {
  for (std::size_t c = 0; c < channels_; ++c) {
    const auto value = static_cast<double>(wanted[c]);
    const double error = static_cast<double>(prediction[c]) - value;
    double* sums = sums_.data() + c * value_sums;
    sums[squared] += error * error;
    sums[absolute] += std::abs(error);
    sums[target] += value;
    sums[target_squared] += value * value;
  }
}

void ScoreSums::add_label(std::span<const float> prediction, std::int32_t label) {
  const auto at = static_cast<std::size_t>(label);
  const auto most =
      static_cast<std::size_t>(std::max_element(prediction.begin(), prediction.end()) - prediction.begin());
  const auto largest = static_cast<double>(prediction[most]);
  double sum = 0;
  for (std::size_t c = 0; c < channels_; ++c)
    sum += probabilities_[c] = std::exp(static_cast<double>(prediction[c]) - largest);
  for (std::size_t c = 0; c < channels_; ++c) sums_[c * class_sums + soft_predicted] += probabilities_[c] / sum;
  sums_[at * class_sums + soft_both] += probabilities_[at] / sum;
  sums_[most * class_sums + predicted] += 1;
  sums_[at * class_sums + actual] += 1;
  if (most == at) sums_[at * class_sums + both] += 1;
  sums_.back() += largest + std::log(sum) - static_cast<double>(prediction[at]);
}

void ScoreSums::add(engine::Engine& engine, const EvaluatedBatch& batch) {
  samples_ += batch.samples;
  const schedule::Schedule& schedule = engine.schedule();
  for (std::size_t i = 0; i < schedule.predictions.size(); ++i) {
    const schedule::Port& port = schedule.predictions[i];
    if (port.buffer < 0) continue;
    const std::span<const float> predictions = engine.floats(port.buffer);
    const int wanted = schedule.targets[i].buffer;
    // Both are dense, sample by sample; targets as the predictions, or one label per pixel.
    const std::int64_t counted = std::min(port.box.hi.n, batch.samples) - port.box.lo.n;
    if (counted <= 0) continue;
    const tensor::Shape extents = tensor::extents_of(port.box);
    const auto pixels = static_cast<std::size_t>(counted * extents.d * extents.h * extents.w);
    const auto first = static_cast<std::size_t>(port.layout.offset);
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const auto prediction = predictions.subspan(first + pixel * channels_, channels_);
      if (labels_) {
        add_label(prediction, engine.labels(wanted)[pixel]);
      } else {
        add_values(prediction, engine.floats(wanted).subspan(pixel * channels_, channels_));
      }
    }
  }
}

Scores ScoreSums::total(comm::Comm& comm) const {
  std::vector<double> sums = sums_;
  comm::sum_in_order(comm, sums);

  Scores scores{.samples = samples_, .labels = labels_};
  const auto pixels = static_cast<double>(samples_ * pixels_per_sample_);
  const std::span<const double> per_class = std::span(sums).first(sums.size() - (labels_ ? 1 : 0));
  labels_ ? score_labels(scores, per_class, pixels) : score_values(scores, per_class, pixels);
  for (const model::LossTerm& term : loss_.terms) {
    switch (term.kind) {
      case LossKind::mean_squared_error: scores.loss += term.weight * scores.mean_squared_error; break;
      case LossKind::mean_absolute_error: scores.loss += term.weight * scores.mean_absolute_error; break;
      case LossKind::cross_entropy: scores.loss += term.weight * sums.back() / pixels; break;
      case LossKind::soft_dice: scores.loss += term.weight * soft_dice_loss(per_class); break;
    }
  }
  return scores;
}

}  // namespace orthant::train
