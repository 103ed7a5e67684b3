#include "orthant/oracle/prices.hpp"

#include "orthant/base/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace orthant::oracle {
namespace {

/// How far a setting is from the one that is asked for.
double distance(const Setting& setting, int threads, int ranks) {
  return std::abs(std::log2(static_cast<double>(setting.threads) / threads)) +
         0.5 * std::abs(std::log2(static_cast<double>(setting.ranks_per_machine) / ranks));
}

/// Between the extents of two tasks: how often one would have to be doubled or halved to become the other.
double distance(const Features& a, const Features& b) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.extents.size(), b.extents.size()); ++i) {
    const double steps = std::log2(a.extents[i] / b.extents[i]);
    sum += steps * steps;
  }
  return std::sqrt(sum);
}

/// The part of a family's name that a poorer match has in common with it; empty at the end.
std::string without_last_word(const std::string& family) {
  const std::size_t space = family.rfind(' ');
  return space == std::string::npos ? "" : family.substr(0, space);
}

struct Neighbour {
  double distance = 0;
  double log_ratio = 0;  ///< of the measured time to the roofline's
};

}  // namespace

const char* name_of(Knowledge knowledge) {
  constexpr std::array names{"measured", "interpolated", "curve"};
  return names.at(static_cast<std::size_t>(knowledge));
}

Prices::Prices(const Profile& profile, int threads, int ranks_per_machine) : profile_(&profile) {
  if (profile.settings.empty()) base::fail(base::Exit::bad_data, "{}: the profile has no settings", profile.name);
  const auto nearest =
      std::min_element(profile.settings.begin(), profile.settings.end(), [&](const Setting& a, const Setting& b) {
        return distance(a, threads, ranks_per_machine) < distance(b, threads, ranks_per_machine);
      });
  setting_ = &*nearest;
  scale_ = static_cast<double>(nearest->threads) / threads;
  scale_error_ = 0.1 * distance(*nearest, threads, ranks_per_machine);
  for (const auto& [key, task] : setting_->tasks) families_[task.features.family].push_back(&task);
}

double Prices::roofline_seconds(const Features& features) const {
  const double arithmetic = features.flops / setting_->flops_per_second;
  return std::max({arithmetic, features.bytes / setting_->memory_bytes_per_second, 1e-9});
}

Price Prices::by_curve(const Features& features) const {
  const EfficiencyCurve* best = nullptr;
  for (const EfficiencyCurve& curve : profile_->curves) {
    const bool matches = features.family.compare(0, curve.family.size(), curve.family) == 0;
    if (matches && (!best || curve.family.size() > best->family.size())) best = &curve;
  }
  const EfficiencyCurve assumed{.peak_share = 0.5, .error = 0.5};
  const EfficiencyCurve& curve = best ? *best : assumed;
  const double memory = features.bytes / setting_->memory_bytes_per_second;
  double arithmetic = 0;
  if (features.flops > 0) {
    const double intensity = features.flops / std::max(1.0, features.bytes);
    const double share = curve.peak_share * intensity / (intensity + curve.half_intensity);
    arithmetic = features.flops / (share * setting_->flops_per_second);
  }
  return {.seconds = std::max(arithmetic, memory), .error = curve.error, .knowledge = Knowledge::curve};
}

Price Prices::estimate(const Features& features) const {
  constexpr std::size_t most_neighbours = 6;
  constexpr double error_per_word = 0.1, error_per_step = 0.04, least_error = 0.04;
  std::vector<Neighbour> neighbours;
  double error = 0;
  for (std::string family = features.family; neighbours.empty() && !family.empty();
       family = without_last_word(family)) {
    if (family != features.family) error += error_per_word;
    for (const auto& [name, members] : families_) {
      if (name.compare(0, family.size(), family) != 0) continue;
      for (const MeasuredTask* member : members)
        neighbours.push_back(
            {distance(features, member->features), std::log(member->seconds / roofline_seconds(member->features))});
    }
  }
  if (neighbours.empty()) return by_curve(features);
  const std::size_t used = std::min(most_neighbours, neighbours.size());
  std::partial_sort(neighbours.begin(), neighbours.begin() + static_cast<std::ptrdiff_t>(used), neighbours.end(),
                    [](const Neighbour& a, const Neighbour& b) {
                      return std::pair(a.distance, a.log_ratio) < std::pair(b.distance, b.log_ratio);
                    });
  double weights = 0, mean = 0, square = 0;
  for (std::size_t i = 0; i < used; ++i) {
    const double weight = 1 / (0.05 + neighbours[i].distance * neighbours[i].distance);
    weights += weight;
    mean += weight * neighbours[i].log_ratio;
    square += weight * neighbours[i].log_ratio * neighbours[i].log_ratio;
  }
  mean /= weights;
  const double variance = std::max(0.0, square / weights - mean * mean);
  const double far = error_per_step * neighbours.front().distance;
  return {.seconds = roofline_seconds(features) * std::exp(mean),
          .error = std::sqrt(variance + far * far + least_error * least_error) + error,
          .knowledge = Knowledge::interpolated};
}

Price Prices::compute(const model::Task& task) const {
  const auto found = setting_->tasks.empty() ? setting_->tasks.end() : setting_->tasks.find(task_key(task));
  Price price;
  if (found != setting_->tasks.end()) {
    price = {found->second.seconds, found->second.error, Knowledge::measured};
  } else {
    price = estimate(features_of(task));
  }
  price.seconds *= scale_;
  price.error += scale_error_;
  price.seconds += setting_->step_seconds;
  return price;
}

Price Prices::of(const model::Task& task) const {
  const std::uint64_t mark = fingerprint(task);
  const auto found = known_.find(mark);
  if (found != known_.end()) return found->second;
  return known_.emplace(mark, compute(task)).first->second;
}

std::int64_t Prices::scratch_bytes(const model::Task& task) const {
  if (setting_->tasks.empty()) return 0;
  const std::uint64_t mark = fingerprint(task);
  const auto remembered = scratch_.find(mark);
  if (remembered != scratch_.end()) return remembered->second;
  std::int64_t bytes = 0;
  const auto measured = setting_->tasks.find(task_key(task));
  if (measured != setting_->tasks.end()) {
    bytes = measured->second.scratch_bytes;
  } else {
    const Features features = features_of(task);
    const auto family = families_.find(features.family);
    if (family != families_.end()) {
      const auto alike = std::min_element(family->second.begin(), family->second.end(),
                                          [&](const MeasuredTask* a, const MeasuredTask* b) {
                                            return distance(features, a->features) < distance(features, b->features);
                                          });
      bytes = (*alike)->scratch_bytes;
    }
  }
  return scratch_.emplace(mark, bytes).first->second;
}

const std::vector<PricedAlgorithm>& Prices::algorithms(const model::ConvTask& open) const {
  static const std::vector<PricedAlgorithm> none;
  if (setting_->tasks.empty()) return none;
  const std::uint64_t mark = fingerprint(open);
  const auto found = choices_.find(mark);
  if (found != choices_.end()) return found->second;
  std::vector<PricedAlgorithm> measured, alike;
  const bool dense = tensor::is_dense(open.src) && tensor::is_dense(open.dst);
  for (const model::Algorithm algorithm : model::named_algorithms) {
    model::ConvTask task = open;
    task.algorithm = algorithm;
    if (setting_->tasks.contains(task_key(task))) {
      measured.push_back({algorithm, of(task)});
    } else if (families_.contains(features_of(task).family) && (algorithm != model::Algorithm::onednn || dense)) {
      alike.push_back({algorithm, of(task)});
    }
  }
  return choices_.emplace(mark, measured.empty() ? std::move(alike) : std::move(measured)).first->second;
}

PricedAlgorithm Prices::fastest(const model::ConvTask& open) const {
  const std::vector<PricedAlgorithm>& all = algorithms(open);
  if (all.empty()) return {model::Algorithm::automatic, of(open)};
  return *std::min_element(all.begin(), all.end(), [](const PricedAlgorithm& a, const PricedAlgorithm& b) {
    return a.price.seconds < b.price.seconds;
  });
}

}  // namespace orthant::oracle
