#pragma once

#include "orthant/data/generate/value_noise.hpp"
#include "orthant/tensor/box.hpp"

#include <span>
#include <vector>

namespace orthant::data::generate {

/// Volumes like those of medical imaging, with the class of every voxel. Class 0 is what surrounds the organs, then
/// each kind of organ has a class, and the last class is for lesions. With only two classes, lesions have the class of
/// their organ.
struct OrganSettings {
  std::int64_t size = 64;  ///< voxels along each side
  int classes = 3;         ///< 2 to 8
  std::uint64_t seed = 0;
};

/// One volume. Every voxel is a function of seed, sample and position, so that a volume of another size shows the same
/// organs at another resolution.
class OrganScene {
 public:
  OrganScene(const OrganSettings& settings, std::int64_t sample);

  /// Brightness and class of the voxels of some planes, [d][h][w].
  void draw(const tensor::Range& planes, int threads, std::span<float> volume, std::span<std::uint8_t> labels) const;

 private:
  /// A ball that was stretched, turned and dented.
  struct Blob {
    Point centre{};
    std::array<Point, 3> axes{};   ///< unit vectors divided by the radii
    double dent = 0;               ///< as a fraction of the radius
    std::array<Point, 5> waves{};  ///< of the dents, in radii
    std::array<double, 5> phases{};
    std::uint64_t key = 0;
    double brightness = 0;
    int label = 0;
    std::vector<Blob> lesions;
  };

  [[nodiscard]] Blob draw_blob(std::uint64_t key, const Point& centre, double radius, double dent) const;
  [[nodiscard]] Blob draw_organ(std::uint64_t key, int kind) const;
  /// The distance from the centre in radii: below 1 inside.
  static double distance(const Blob& blob, const Point& at);
  /// The tissue at a position, before bias and noise.
  struct Tissue {
    double brightness = 0;
    int label = 0;
  };
  [[nodiscard]] Tissue tissue_at(const Point& at) const;

  OrganSettings settings_;
  std::uint64_t key_;
  Blob body_;
  std::vector<Blob> organs_, vessels_;
  double contrast_, noise_, bias_;
};

}  // namespace orthant::data::generate
