#include "orthant/data/generate/field.hpp"

#include <cassert>
#include <cmath>

namespace orthant::data::generate {
namespace {

/// A wave along a row: cos(a + b) = cos a cos b - sin a sin b, with a from d and h, and b from w in a table.
struct RowWave {
  const Wave* wave;
  std::vector<float> cosine, sine;
};

double centred(std::int64_t position, std::int64_t extent) {
  return (static_cast<double>(position) + 0.5) / static_cast<double>(extent) - 0.5;
}

/// Draws one channel row by row.
class Pen {
 public:
  Pen(const Field& field, const tensor::Extent3& extents, const tensor::Box& box) : field_(field), extents_(extents) {
    for (std::int64_t w = box.lo.w; w < box.hi.w; ++w)
      ramp_.push_back(static_cast<float>(field.slope[2] * centred(w, extents.w)));
    for (const Wave& wave : field.waves) {
      RowWave row{&wave, {}, {}};
      for (std::int64_t w = box.lo.w; w < box.hi.w; ++w) {
        row.cosine.push_back(static_cast<float>(std::cos(wave.k[2] * static_cast<double>(w))));
        row.sine.push_back(static_cast<float>(std::sin(wave.k[2] * static_cast<double>(w))));
      }
      waves_.push_back(std::move(row));
    }
  }

  void draw_row(std::int64_t d, std::int64_t h, float* into, std::int64_t stride) const {
    const auto start = static_cast<float>(field_.level + field_.slope[0] * centred(d, extents_.d) +
                                          field_.slope[1] * centred(h, extents_.h));
    const auto count = static_cast<std::int64_t>(ramp_.size());
    for (std::int64_t w = 0; w < count; ++w) into[w * stride] = start + ramp_[static_cast<std::size_t>(w)];
    for (const RowWave& row : waves_) {
      const Wave& wave = *row.wave;
      const double angle = wave.k[0] * static_cast<double>(d) + wave.k[1] * static_cast<double>(h) + wave.phase;
      const auto a = static_cast<float>(wave.amplitude * std::cos(angle));
      const auto b = static_cast<float>(wave.amplitude * std::sin(angle));
      for (std::int64_t w = 0; w < count; ++w) {
        into[w * stride] += a * row.cosine[static_cast<std::size_t>(w)] - b * row.sine[static_cast<std::size_t>(w)];
      }
    }
  }

 private:
  const Field& field_;
  tensor::Extent3 extents_;
  std::vector<float> ramp_;
  std::vector<RowWave> waves_;
};

}  // namespace

void draw(std::span<const Field> fields, const tensor::Extent3& extents, const tensor::Box& box,
          std::span<float> into) {
  std::vector<Pen> pens;
  for (std::int64_t c = box.lo.c; c < box.hi.c; ++c)
    pens.emplace_back(fields[static_cast<std::size_t>(c)], extents, box);
  const auto channels = static_cast<std::int64_t>(pens.size());
  const std::int64_t row = (box.hi.w - box.lo.w) * channels;
  float* at = into.data();
  for (std::int64_t d = box.lo.d; d < box.hi.d; ++d) {
    for (std::int64_t h = box.lo.h; h < box.hi.h; ++h, at += row) {
      for (std::int64_t c = 0; c < channels; ++c) pens[static_cast<std::size_t>(c)].draw_row(d, h, at + c, channels);
    }
  }
  assert(at == into.data() + into.size());
}

}  // namespace orthant::data::generate
