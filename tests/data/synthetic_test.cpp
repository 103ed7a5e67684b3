#include "orthant/data/generate/synthetic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace orthant {
namespace {

using data::generate::SyntheticDataset;
using data::sets::SampleShape;

constexpr SampleShape volume{.input = {.n = 1, .c = 4, .d = 8, .h = 6, .w = 10}, .target = {.n = 1, .c = 4}};
constexpr SampleShape image{.input = {.n = 1, .c = 3, .d = 1, .h = 12, .w = 10},
                            .target = {.n = 1, .c = 1},
                            .spatial_count = 2,
                            .labels = true,
                            .classes = 5};
constexpr SampleShape voxels{.input = {.n = 1, .c = 1, .d = 16, .h = 16, .w = 16},
                             .target = {.n = 1, .c = 1, .d = 16, .h = 16, .w = 16},
                             .labels = true,
                             .classes = 3};

std::vector<float> input_of(const SyntheticDataset& set, const SampleShape& shape, std::int64_t sample) {
  std::vector<float> items(static_cast<std::size_t>(tensor::volume(shape.input)));
  set.read_input(sample, tensor::whole(shape.input), items);
  return items;
}

TEST(Synthetic, DependsOnSeedAndSampleAlone) {
  for (const SampleShape& shape : {volume, image, voxels}) {
    const SyntheticDataset set(shape, 8, 1);

    EXPECT_EQ(input_of(set, shape, 3), input_of(SyntheticDataset(shape, 99, 1), shape, 3));
    EXPECT_NE(input_of(set, shape, 3), input_of(set, shape, 4));
    EXPECT_NE(input_of(set, shape, 3), input_of(SyntheticDataset(shape, 8, 2), shape, 3));
  }
}

TEST(Synthetic, MakesAnyBoxAsPartOfTheWhole) {
  const tensor::Box box{.lo = {0, 1, 2, 0, 3}, .hi = {1, 3, 7, 5, 10}};
  for (const SampleShape& shape : {volume, voxels}) {
    tensor::Box part = box;
    if (shape.input.c == 1) part.lo.c = 0, part.hi.c = 1;
    const SyntheticDataset set(shape, 8, 1);
    const std::vector<float> whole = input_of(set, shape, 2);
    std::vector<float> items(static_cast<std::size_t>(tensor::volume(tensor::extents_of(part))));

    set.read_input(2, part, items);

    std::size_t item = 0;
    for (std::int64_t d = part.lo.d; d < part.hi.d; ++d) {
      for (std::int64_t h = part.lo.h; h < part.hi.h; ++h) {
        for (std::int64_t w = part.lo.w; w < part.hi.w; ++w) {
          for (std::int64_t c = part.lo.c; c < part.hi.c; ++c) {
            const std::int64_t at = ((d * shape.input.h + h) * shape.input.w + w) * shape.input.c + c;
            ASSERT_EQ(items[item++], whole[static_cast<std::size_t>(at)]);
          }
        }
      }
    }
  }
}

TEST(Synthetic, MakesAnyBoxOfLabels) {
  const tensor::Box part{.lo = {0, 0, 2, 5, 3}, .hi = {1, 1, 13, 6, 16}};
  const SyntheticDataset set(voxels, 1, 1);
  std::vector<std::int32_t> whole(16 * 16 * 16);
  std::vector<std::int32_t> labels(11 * 13);

  set.read_labels(0, tensor::whole(voxels.target), whole);
  set.read_labels(0, part, labels);

  for (std::size_t d = 0; d < 11; ++d) {
    for (std::size_t w = 0; w < 13; ++w) EXPECT_EQ(labels[d * 13 + w], whole[((d + 2) * 16 + 5) * 16 + w + 3]);
  }
}

TEST(Synthetic, TargetsAreInTheInput) {
  const SyntheticDataset set(volume, 64, 1);
  double product = 0;
  for (std::int64_t sample = 0; sample < 64; ++sample) {
    const std::vector<float> items = input_of(set, volume, sample);
    std::vector<float> target(4);
    set.read_values(sample, tensor::whole(volume.target), target);
    for (const float value : target) EXPECT_LE(std::abs(value), 1);
    product += std::accumulate(items.begin(), items.end(), 0.0) / static_cast<double>(items.size()) * target[0];
  }
  EXPECT_GT(product / 64, 0.1);
}

TEST(Synthetic, UsesEveryClass) {
  const SyntheticDataset images(image, 64, 1);
  std::set<std::int32_t> classes;
  for (std::int64_t sample = 0; sample < 64; ++sample) {
    std::vector<std::int32_t> label(1);
    images.read_labels(sample, tensor::whole(image.target), label);
    classes.insert(label[0]);
  }
  EXPECT_EQ(classes, (std::set<std::int32_t>{0, 1, 2, 3, 4}));

  const SyntheticDataset volumes(voxels, 1, 1);
  std::vector<std::int32_t> labels(16 * 16 * 16);
  volumes.read_labels(0, tensor::whole(voxels.target), labels);
  EXPECT_EQ(std::set<std::int32_t>(labels.begin(), labels.end()), (std::set<std::int32_t>{0, 1, 2}));
}

TEST(Synthetic, BrightnessTellsTheClassOfAVoxel) {
  const SyntheticDataset set(voxels, 1, 1);
  const std::vector<float> items = input_of(set, voxels, 0);
  std::vector<std::int32_t> labels(items.size());
  set.read_labels(0, tensor::whole(voxels.target), labels);

  for (std::size_t i = 0; i < items.size(); ++i) EXPECT_NEAR(items[i], static_cast<float>(labels[i]) - 1, 0.26);
}

}  // namespace
}  // namespace orthant
