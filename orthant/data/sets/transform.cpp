#include "orthant/data/sets/transform.hpp"

#include "orthant/base/error.hpp"
#include "orthant/data/arrays/number.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::data::sets {
namespace {

using base::Exit;
using base::fail;

constexpr std::int64_t most_logarithms = 4096;

/// Expands a list to one number per channel.
std::vector<double> per_channel(const std::vector<double>& list, std::int64_t channels, const char* what) {
  if (list.size() == 1) return std::vector<double>(static_cast<std::size_t>(channels), list.front());
  if (static_cast<std::int64_t>(list.size()) != channels) {
    fail(Exit::bad_data, "normalise has {} numbers in {}, but the input has {} channels; give one, or one per channel",
         list.size(), what, channels);
  }
  return list;
}

void check(Transform& transform, std::int64_t channels) {
  auto* normalise = std::get_if<Normalise>(&transform);
  if (normalise == nullptr) return;
  normalise->mean = per_channel(normalise->mean, channels, "mean");
  normalise->deviation = per_channel(normalise->deviation, channels, "std");
}

/// Items in channels-last order: item i belongs to channel first_channel + i % channels.
struct Pixels {
  std::span<float> items;
  std::int64_t first_channel, channels;
};

void apply_log1p(const Pixels& pixels, std::span<const float> logarithms) {
  const auto count = static_cast<float>(logarithms.size());
  for (float& x : pixels.items) {
    const bool whole = x >= 0 && x < count && static_cast<float>(static_cast<std::int32_t>(x)) == x;
    x = whole ? logarithms[static_cast<std::size_t>(x)] : std::log1p(x);
  }
}

void apply_normalise(const Pixels& pixels, const Normalise& normalise) {
  for (std::int64_t c = 0; c < pixels.channels; ++c) {
    const auto channel = static_cast<std::size_t>(pixels.first_channel + c);
    const auto mean = static_cast<float>(normalise.mean[channel]);
    const auto inverse = static_cast<float>(1 / normalise.deviation[channel]);
    for (auto i = static_cast<std::size_t>(c); i < pixels.items.size(); i += static_cast<std::size_t>(pixels.channels))
      pixels.items[i] = (pixels.items[i] - mean) * inverse;
  }
}

void apply_scale(const Pixels& pixels, const Scale& scale) {
  const auto factor = static_cast<float>(scale.factor);
  for (float& x : pixels.items) x *= factor;
}

[[noreturn]] void fail_at(std::int64_t sample, const tensor::Box& box, std::int64_t item, float value) {
  const tensor::Shape e = extents_of(box);
  const std::int64_t pixel = item / e.c;
  fail(Exit::bad_data, "sample {} at channel {}, [{}, {}, {}] becomes {} after the transforms; is this the right data?",
       sample, box.lo.c + item % e.c, box.lo.d + pixel / (e.h * e.w), box.lo.h + pixel / e.w % e.h,
       box.lo.w + pixel % e.w, value);
}

}  // namespace

TransformedDataset::TransformedDataset(std::unique_ptr<Dataset> dataset, std::vector<Transform> transforms,
                                       const SampleShape& shape)
    : dataset_(std::move(dataset)), transforms_(std::move(transforms)) {
  for (Transform& transform : transforms_) check(transform, shape.input.c);
  for (std::int64_t i = 0; i < most_logarithms; ++i) logarithms_.push_back(std::log1p(static_cast<float>(i)));
}

void TransformedDataset::read_input(std::int64_t sample, const tensor::Box& box, std::span<float> into) const {
  dataset_->read_input(sample, box, into);
  const std::int64_t channels = box.hi.c - box.lo.c;
  // As many whole pixels as stay in the caches from one transform to the next.
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(1, 8192 / channels) * channels);
  for (std::size_t begin = 0; begin < into.size(); begin += most) {
    const Pixels pixels{into.subspan(begin, std::min(most, into.size() - begin)), box.lo.c, channels};
    for (const Transform& transform : transforms_) {
      if (std::holds_alternative<Log1p>(transform)) apply_log1p(pixels, logarithms_);
      if (const auto* scale = std::get_if<Scale>(&transform)) apply_scale(pixels, *scale);
      if (const auto* normalise = std::get_if<Normalise>(&transform)) apply_normalise(pixels, *normalise);
    }
    if (arrays::all_finite(pixels.items.data(), static_cast<std::int64_t>(pixels.items.size()))) continue;
    std::size_t bad = begin;
    while (std::isfinite(into[bad])) ++bad;
    fail_at(sample, box, static_cast<std::int64_t>(bad), into[bad]);
  }
}

void TransformedDataset::read_values(std::int64_t sample, const tensor::Box& box, std::span<float> into) const {
  dataset_->read_values(sample, box, into);
}

void TransformedDataset::read_labels(std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) const {
  dataset_->read_labels(sample, box, into);
}

}  // namespace orthant::data::sets
