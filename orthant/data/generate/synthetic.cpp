#include "orthant/data/generate/synthetic.hpp"

#include "orthant/base/random.hpp"
#include "orthant/data/generate/field.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace orthant::data::generate {
namespace {

using base::keyed;
using base::uniform;
using tensor::Extent3;
using tensor::Shape;

/// Streams of random numbers; each starts from keyed(seed, sample).
enum Stream : std::uint64_t { target_stream = 1, phase_stream, noise_stream, ball_stream, class_stream };

constexpr double noise_level = 0.25;

double between(double low, double high, std::uint64_t key, std::uint64_t index) {
  return low + (high - low) * uniform(key, index);
}

/// A wave of the given length in cells; direction and phase are random. It does not vary along dims of one cell.
Wave make_wave(const Extent3& extents, double length, double amplitude, std::uint64_t direction, std::uint64_t phase) {
  Wave wave{.k = {between(-1, 1, direction, 0), between(-1, 1, direction, 1), between(-1, 1, direction, 2)},
            .phase = between(0, 2 * std::numbers::pi, phase, 0),
            .amplitude = amplitude};
  const std::array<std::int64_t, 3> sizes{extents.d, extents.h, extents.w};
  double norm = 1e-9;
  for (std::size_t i = 0; i < 3; ++i) {
    if (sizes[i] == 1) wave.k[i] = 0;
    norm += wave.k[i] * wave.k[i];
  }
  for (double& k : wave.k) k *= 2 * std::numbers::pi / (length * std::sqrt(norm));
  return wave;
}

/// Value k of a sample, in [-1, 1].
double target_value(std::uint64_t key, std::int64_t k) {
  return between(-1, 1, keyed(key, target_stream), static_cast<std::uint64_t>(k));
}

/// Four values shape one field: level, slope, amplitude and wave length. More values go to further channels.
std::vector<Field> value_fields(const sets::SampleShape& shape, std::uint64_t key) {
  std::vector<Field> fields(static_cast<std::size_t>(shape.input.c));
  const std::int64_t groups = std::min((shape.target.c + 3) / 4, shape.input.c);
  for (std::int64_t c = 0; c < shape.input.c; ++c) {
    Field& field = fields[static_cast<std::size_t>(c)];
    const std::int64_t first = c % groups * 4;
    const auto value = [&](std::int64_t k) { return first + k < shape.target.c ? target_value(key, first + k) : 0; };
    const double slope = 1.5 * value(1);
    field.level = 0.75 * value(0);
    field.slope = shape.input.d > 1 ? std::array<double, 3>{slope, 0, 0} : std::array<double, 3>{0, slope, 0};
    const std::uint64_t direction = keyed(key, phase_stream);
    field.waves.push_back(make_wave(spatial(shape.input), 8 * std::exp2(value(3)), 0.5 * (1 + 0.9 * value(2)),
                                    direction, keyed(direction, static_cast<std::uint64_t>(c))));
  }
  return fields;
}

std::int64_t class_of(const sets::SampleShape& shape, std::uint64_t key) {
  return static_cast<std::int64_t>(keyed(key, class_stream) % static_cast<std::uint64_t>(shape.classes));
}

std::vector<Field> class_fields(const sets::SampleShape& shape, std::uint64_t seed, std::uint64_t key) {
  std::vector<Field> fields(static_cast<std::size_t>(shape.input.c));
  const std::uint64_t pattern = keyed(keyed(seed, class_stream), static_cast<std::uint64_t>(class_of(shape, key)));
  for (std::size_t c = 0; c < fields.size(); ++c) {
    const std::uint64_t channel = keyed(pattern, c);
    fields[c].level = between(-0.5, 0.5, channel, 3);
    fields[c].waves.push_back(
        make_wave(spatial(shape.input), between(4, 16, channel, 4), 0.7, channel, keyed(keyed(key, phase_stream), c)));
  }
  return fields;
}

struct Ball {
  std::array<double, 3> centre{};  ///< as a fraction of the extent
  double radius = 0;
  std::int32_t label = 0;
};

std::vector<Ball> make_balls(const sets::SampleShape& shape, std::uint64_t key) {
  const std::int64_t kinds = std::max<std::int64_t>(shape.classes - 1, 1);
  std::vector<Ball> balls;
  for (std::int64_t i = 0; i < std::clamp<std::int64_t>(2 * kinds, 4, 24); ++i) {
    const std::uint64_t ball = keyed(keyed(key, ball_stream), static_cast<std::uint64_t>(i));
    balls.push_back({.centre = {uniform(ball, 0), uniform(ball, 1), uniform(ball, 2)},
                     .radius = between(0.1, 0.25, ball, 3),
                     .label = static_cast<std::int32_t>(std::min(1 + i % kinds, shape.classes - 1))});
  }
  return balls;
}

/// The class at a position, which is given as fractions of the extents; a later ball covers an earlier one. Flat
/// volumes have no depth.
std::int32_t label_at(std::span<const Ball> balls, bool flat, double d, double h, double w) {
  std::int32_t label = 0;
  for (const Ball& ball : balls) {
    const double dd = flat ? 0 : d - ball.centre[0];
    const double dh = h - ball.centre[1];
    const double dw = w - ball.centre[2];
    if (dd * dd + dh * dh + dw * dw < ball.radius * ball.radius) label = ball.label;
  }
  return label;
}

double part(std::int64_t position, std::int64_t extent) {
  return (static_cast<double>(position) + 0.5) / static_cast<double>(extent);
}

/// Calls visit(item, label) for every pixel of `box` in a volume of `extents`.
template <class Visit>
void for_each_label(std::span<const Ball> balls, const Extent3& extents, const tensor::Box& box, Visit visit) {
  std::int64_t pixel = 0;
  for (std::int64_t d = box.lo.d; d < box.hi.d; ++d) {
    for (std::int64_t h = box.lo.h; h < box.hi.h; ++h) {
      for (std::int64_t w = box.lo.w; w < box.hi.w; ++w) {
        visit(pixel++, label_at(balls, extents.d == 1, part(d, extents.d), part(h, extents.h), part(w, extents.w)));
      }
    }
  }
}

void add_noise(const Shape& global, const tensor::Box& box, std::uint64_t key, std::span<float> into) {
  const std::int64_t row = (box.hi.w - box.lo.w);
  std::size_t item = 0;
  for (std::int64_t d = box.lo.d; d < box.hi.d; ++d) {
    for (std::int64_t h = box.lo.h; h < box.hi.h; ++h) {
      const std::int64_t first = ((d * global.h + h) * global.w + box.lo.w) * global.c;
      for (std::int64_t w = 0; w < row; ++w) {
        for (std::int64_t c = box.lo.c; c < box.hi.c; ++c) {
          const std::uint64_t bits = base::mix(key + static_cast<std::uint64_t>(first + w * global.c + c)) >> 40U;
          into[item++] += static_cast<float>(noise_level * 0x1.0p-23) * (static_cast<float>(bits) - 0x1.0p23F);
        }
      }
    }
  }
}

bool per_sample(const sets::SampleShape& shape) { return tensor::pixels(shape.target) == 1; }

/// The source without its noise.
void draw_input(const sets::SampleShape& shape, std::uint64_t seed, std::uint64_t key, const tensor::Box& box,
                std::span<float> into) {
  const bool balls = shape.labels && !per_sample(shape);
  std::vector<Field> fields(static_cast<std::size_t>(shape.input.c));
  if (!shape.labels) fields = value_fields(shape, key);
  if (shape.labels && !balls) fields = class_fields(shape, seed, key);
  draw(fields, spatial(shape.input), box, into);
  if (!balls) return;
  const auto channels = box.hi.c - box.lo.c;
  const float step = 2.0F / static_cast<float>(std::max<std::int64_t>(shape.classes - 1, 1));
  for_each_label(make_balls(shape, key), spatial(shape.input), box, [&](std::int64_t pixel, std::int32_t label) {
    for (std::int64_t c = 0; c < channels; ++c)
      into[static_cast<std::size_t>(pixel * channels + c)] += step * static_cast<float>(label) - 1;
  });
}

}  // namespace

SyntheticDataset::SyntheticDataset(const sets::SampleShape& shape, std::int64_t samples, std::uint64_t seed)
    : shape_(shape), samples_(samples), seed_(seed) {}

void SyntheticDataset::read_input(std::int64_t sample, const tensor::Box& box, std::span<float> into) const {
  const std::uint64_t key = keyed(seed_, static_cast<std::uint64_t>(sample));
  draw_input(shape_, seed_, key, box, into);
  add_noise(shape_.input, box, keyed(key, noise_stream), into);
}

void SyntheticDataset::read_values(std::int64_t sample, const tensor::Box& box, std::span<float> into) const {
  const std::uint64_t key = keyed(seed_, static_cast<std::uint64_t>(sample));
  if (per_sample(shape_)) {
    for (std::size_t k = 0; k < into.size(); ++k)
      into[k] = static_cast<float>(target_value(key, box.lo.c + static_cast<std::int64_t>(k)));
    return;
  }
  std::vector<Field> fields(static_cast<std::size_t>(shape_.target.c), value_fields(shape_, key).front());
  draw(fields, spatial(shape_.target), box, into);
}

void SyntheticDataset::read_labels(std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) const {
  const std::uint64_t key = keyed(seed_, static_cast<std::uint64_t>(sample));
  if (per_sample(shape_)) {
    into[0] = static_cast<std::int32_t>(class_of(shape_, key));
    return;
  }
  for_each_label(make_balls(shape_, key), spatial(shape_.target), box,
                 [&](std::int64_t pixel, std::int32_t label) { into[static_cast<std::size_t>(pixel)] = label; });
}

}  // namespace orthant::data::generate
