#include "orthant/data/generate/organs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace orthant::data::generate {
namespace {

struct Volume {
  std::vector<float> brightness;
  std::vector<std::uint8_t> labels;
  friend bool operator==(const Volume&, const Volume&) = default;
};

Volume planes_of(const OrganSettings& settings, std::int64_t sample, const tensor::Range& planes, int threads = 1) {
  const auto voxels = static_cast<std::size_t>((planes.hi - planes.lo) * settings.size * settings.size);
  Volume volume{std::vector<float>(voxels), std::vector<std::uint8_t>(voxels)};
  OrganScene(settings, sample).draw(planes, threads, volume.brightness, volume.labels);
  return volume;
}

Volume volume_of(const OrganSettings& settings, std::int64_t sample) {
  return planes_of(settings, sample, {0, settings.size});
}

double share_of(const Volume& volume, int label) {
  return static_cast<double>(std::count(volume.labels.begin(), volume.labels.end(), label)) /
         static_cast<double>(volume.labels.size());
}

TEST(Organs, AreAFunctionOfSeedSampleAndPlace) {
  const OrganSettings settings{.size = 24, .seed = 3};
  const Volume whole = volume_of(settings, 5);

  EXPECT_EQ(whole, volume_of(settings, 5));
  EXPECT_NE(whole, volume_of(settings, 6));
  EXPECT_NE(whole, volume_of({.size = 24, .seed = 4}, 5));
  const Volume part = planes_of(settings, 5, {7, 18}, 3);
  EXPECT_TRUE(std::equal(part.labels.begin(), part.labels.end(), whole.labels.begin() + 7 * 24 * 24));
  EXPECT_TRUE(std::equal(part.brightness.begin(), part.brightness.end(), whole.brightness.begin() + 7 * 24 * 24));
}

TEST(Organs, EveryVolumeHasSurroundingsOrganAndLesion) {
  for (std::int64_t sample = 0; sample < 40; ++sample) {
    const Volume volume = volume_of({.size = 32, .seed = 1}, sample);
    EXPECT_GT(share_of(volume, 0), 0.75);
    EXPECT_GT(share_of(volume, 1), 0.01);
    EXPECT_GT(share_of(volume, 2), 0.0005);
    EXPECT_NEAR(share_of(volume, 0) + share_of(volume, 1) + share_of(volume, 2), 1, 1e-12);
  }
}

TEST(Organs, HaveAsManyClassesAsAsked) {
  for (const int classes : {2, 3, 4, 8}) {
    std::set<int> seen;
    for (std::int64_t sample = 0; sample < 6; ++sample) {
      const Volume volume = volume_of({.size = 32, .classes = classes}, sample);
      seen.insert(volume.labels.begin(), volume.labels.end());
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(classes));
    EXPECT_EQ(*seen.rbegin(), classes - 1);
  }
}

TEST(Organs, AreTheSameAtAnotherSize) {
  const Volume coarse = volume_of({.size = 16, .seed = 2}, 0), fine = volume_of({.size = 48, .seed = 2}, 0);
  int same = 0;
  std::size_t voxel = 0;
  for (std::size_t d = 0; d < 16; ++d)
    for (std::size_t h = 0; h < 16; ++h)
      for (std::size_t w = 0; w < 16; ++w, ++voxel)
        same += coarse.labels[voxel] == fine.labels[((3 * d + 1) * 48 + 3 * h + 1) * 48 + 3 * w + 1];

  EXPECT_EQ(same, 16 * 16 * 16);
}

/// 2 |A and B| / (|A| + |B|) of what lies in a range of brightness and what has a label in a range, over all volumes.
double dice(const std::vector<Volume>& volumes, float lo, float hi, int first_label) {
  double both = 0, either = 0;
  for (const Volume& volume : volumes) {
    for (std::size_t i = 0; i < volume.labels.size(); ++i) {
      const bool is_chosen = volume.brightness[i] >= lo && volume.brightness[i] < hi;
      const bool is_labelled = volume.labels[i] >= first_label;
      both += is_chosen && is_labelled;
      either += static_cast<int>(is_chosen) + static_cast<int>(is_labelled);
    }
  }
  return 2 * both / either;
}

TEST(Organs, CannotBeFoundByBrightnessAlone) {
  std::vector<Volume> volumes;
  for (std::int64_t sample = 0; sample < 6; ++sample) volumes.push_back(volume_of({.size = 32}, sample));
  double organ = 0, lesion = 0;
  for (float lo = 0.2F; lo < 0.9F; lo += 0.05F) {
    organ = std::max(organ, dice(volumes, lo, 10, 1));
    for (float width = 0.1F; width < 0.5F; width += 0.1F) lesion = std::max(lesion, dice(volumes, lo, lo + width, 2));
  }

  EXPECT_GT(organ, 0.4);  // there is something to see
  EXPECT_LT(organ, 0.75);
  EXPECT_LT(lesion, 0.2);
}

}  // namespace
}  // namespace orthant::data::generate
