#include "orthant/data/generate/organs.hpp"

#include "orthant/base/random.hpp"
#include "orthant/data/io/threads.hpp"

#include <cmath>
#include <numbers>

namespace orthant::data::generate {
namespace {

/// Streams of random numbers of one scene.
enum Stream : std::uint64_t { scene, organ, lesion, vessel, voxel, bias, texture };

double between(std::uint64_t key, std::uint64_t index, double lo, double hi) {
  return lo + (hi - lo) * base::uniform(key, index);
}

/// Brightness of air, of the tissue between organs, and of a lesion, which looks much like tissue.
constexpr double air = 0.05, tissue = 0.45, lesion_brightness = 0.38;

double dot(const Point& a, const Point& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

Point random_direction(std::uint64_t key, std::uint64_t index) {
  Point point{};
  for (std::size_t i = 0; i < 3; ++i) point[i] = base::normal(key, 3 * index + i);
  const double length = std::sqrt(dot(point, point));
  for (double& component : point) component /= length;
  return point;
}

/// Three perpendicular unit vectors in random directions: the rows of a product of rotations about each axis.
std::array<Point, 3> random_axes(std::uint64_t key) {
  std::array<double, 3> c{}, s{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double angle = between(key, i, -0.6, 0.6);
    c[i] = std::cos(angle);
    s[i] = std::sin(angle);
  }
  return {Point{c[1] * c[2], -c[1] * s[2], s[1]},
          Point{c[0] * s[2] + s[0] * s[1] * c[2], c[0] * c[2] - s[0] * s[1] * s[2], -s[0] * c[1]},
          Point{s[0] * s[2] - c[0] * s[1] * c[2], s[0] * c[2] + c[0] * s[1] * s[2], c[0] * c[1]}};
}

}  // namespace

OrganScene::OrganScene(const OrganSettings& settings, std::int64_t sample)
    : settings_(settings), key_(base::keyed(base::keyed(settings.seed, 0x0126A5), static_cast<std::uint64_t>(sample))) {
  const std::uint64_t key = base::keyed(key_, scene);
  contrast_ = between(key, 0, 0.85, 1.15);
  noise_ = between(key, 1, 0.06, 0.09);
  bias_ = between(key, 2, 0.15, 0.30);
  body_ = draw_blob(base::keyed(key, 3), {0.5, 0.5, 0.5}, 0.45, 0.1);
  const int kinds = std::max(1, settings.classes - 2);
  const int count = std::max(kinds, 2 + static_cast<int>(between(key, 4, 0, 2)));
  for (int i = 0; i < count; ++i)
    organs_.push_back(draw_organ(base::keyed(base::keyed(key_, organ), static_cast<std::uint64_t>(i)), i % kinds));
  const int vessels = 16 + static_cast<int>(between(key, 5, 0, 8));
  for (int i = 0; i < vessels; ++i) {
    const std::uint64_t own = base::keyed(base::keyed(key_, vessel), static_cast<std::uint64_t>(i));
    const Point centre{between(own, 0, 0.15, 0.85), between(own, 1, 0.15, 0.85), between(own, 2, 0.15, 0.85)};
    vessels_.push_back(draw_blob(own, centre, between(own, 3, 0.03, 0.06), 0.3));
    vessels_.back().brightness = between(own, 4, 0.60, 0.80);
  }
}

OrganScene::Blob OrganScene::draw_blob(std::uint64_t key, const Point& centre, double radius, double dent) const {
  Blob blob{.centre = centre, .axes = random_axes(base::keyed(key, 1)), .dent = dent, .key = base::keyed(key, 2)};
  for (std::size_t i = 0; i < 3; ++i) {
    const double stretched = radius * between(blob.key, 1000 + i, 0.8, 1.2);
    for (double& component : blob.axes[i]) component /= stretched;
  }
  for (std::size_t i = 0; i < blob.waves.size(); ++i) {
    blob.waves[i] = random_direction(blob.key, 2000 + i);
    for (double& component : blob.waves[i]) component *= between(blob.key, 3000 + i, 1.5, 4.0);
    blob.phases[i] = between(blob.key, 4000 + i, 0, 2 * std::numbers::pi);
  }
  return blob;
}

OrganScene::Blob OrganScene::draw_organ(std::uint64_t key, int kind) const {
  const Point centre{between(key, 0, 0.30, 0.70), between(key, 1, 0.30, 0.70), between(key, 2, 0.30, 0.70)};
  const double radius = between(key, 3, 0.15, 0.22);
  Blob blob = draw_blob(key, centre, radius, 0.45);
  blob.label = 1 + kind;
  blob.brightness = between(key, 4, 0.64, 0.70) + 0.12 * kind;
  const int lesions = 1 + static_cast<int>(between(key, 5, 0, 2));
  for (int i = 0; i < lesions; ++i) {
    const std::uint64_t own = base::keyed(base::keyed(key, lesion), static_cast<std::uint64_t>(i));
    const Point direction = random_direction(own, 0);
    const double offset = radius * between(own, 8, 0, 0.4);
    Point place = centre;
    for (std::size_t dim = 0; dim < 3; ++dim) place[dim] += offset * direction[dim];
    blob.lesions.push_back(draw_blob(own, place, radius * between(own, 9, 0.45, 0.60), 0.3));
    blob.lesions.back().label = settings_.classes > 2 ? settings_.classes - 1 : blob.label;
  }
  return blob;
}

double OrganScene::distance(const Blob& blob, const Point& at) {
  const Point from{at[0] - blob.centre[0], at[1] - blob.centre[1], at[2] - blob.centre[2]};
  const Point local{dot(blob.axes[0], from), dot(blob.axes[1], from), dot(blob.axes[2], from)};
  const double straight = std::sqrt(dot(local, local));
  // Far from the organ, where most points are, dents make no difference.
  if (straight > 1 + blob.dent) return straight;
  double dents = 0;
  for (std::size_t i = 0; i < blob.waves.size(); ++i) dents += std::cos(dot(blob.waves[i], local) + blob.phases[i]);
  return straight + blob.dent * dents / static_cast<double>(blob.waves.size());
}

OrganScene::Tissue OrganScene::tissue_at(const Point& at) const {
  if (distance(body_, at) >= 1) return {.brightness = air};
  Tissue found{.brightness = tissue + 0.06 * value_noise(base::keyed(key_, texture), 9, at)};
  for (const Blob& blob : vessels_) {
    if (distance(blob, at) < 1) found.brightness = blob.brightness;
  }
  // Where organs overlap, the later one covers the others.
  for (const Blob& blob : organs_) {
    if (distance(blob, at) >= 1) continue;
    found = {.brightness = blob.brightness + 0.05 * value_noise(blob.key, 22, at), .label = blob.label};
    for (const Blob& inner : blob.lesions) {
      if (distance(inner, at) < 1)
        found = {.brightness = lesion_brightness + 0.06 * value_noise(inner.key, 9, at), .label = inner.label};
    }
  }
  return found;
}

void OrganScene::draw(const tensor::Range& planes, int threads, std::span<float> volume,
                      std::span<std::uint8_t> labels) const {
  const std::int64_t size = settings_.size;
  const auto unit = [&](std::int64_t i) { return (static_cast<double>(i) + 0.5) / static_cast<double>(size); };
  const std::uint64_t noise_key = base::keyed(key_, voxel), bias_key = base::keyed(key_, bias);
  io::in_threads(threads, (planes.hi - planes.lo) * size, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t first = (planes.lo * size + row) * size;
      for (std::int64_t w = 0; w < size; ++w) {
        const Point at{unit(planes.lo + row / size), unit(row % size), unit(w)};
        const Tissue found = tissue_at(at);
        const double shade = 1 + bias_ * value_noise(bias_key, 2, at);
        const double noise = noise_ * base::normal(noise_key, static_cast<std::uint64_t>(first + w));
        const auto index = static_cast<std::size_t>(row * size + w);
        volume[index] = static_cast<float>(contrast_ * shade * found.brightness + noise);
        labels[index] = static_cast<std::uint8_t>(found.label);
      }
    }
  });
}

}  // namespace orthant::data::generate
