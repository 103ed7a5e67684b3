#include "orthant/train/split.hpp"

#include "orthant/base/format.hpp"
#include "tests/data/temporary.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace orthant::train {
namespace {

/// Nothing but names.
class Named final : public data::sets::Dataset {
 public:
  explicit Named(std::vector<std::string> names) : names_(std::move(names)) {}
  [[nodiscard]] std::int64_t samples() const override { return static_cast<std::int64_t>(names_.size()); }
  void read_input(std::int64_t, const tensor::Box&, std::span<float>) const override {}
  void read_values(std::int64_t, const tensor::Box&, std::span<float>) const override {}
  void read_labels(std::int64_t, const tensor::Box&, std::span<std::int32_t>) const override {}
  [[nodiscard]] std::string name(std::int64_t sample) const override {
    return names_[static_cast<std::size_t>(sample)];
  }

 private:
  std::vector<std::string> names_;
};

Named plain(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("set/volume_{:05}.h5", i));
  return Named(names);
}

Named cubes(int universes) {
  std::vector<std::string> names;
  for (int i = 0; i < universes; ++i) {
    for (int cube = 0; cube < 8; ++cube)
      names.push_back(fmt::format("set/universe_{:05}_d{}_h{}_w{}.h5", i, cube / 4, cube / 2 % 2, cube % 2));
  }
  return Named(names);
}

TEST(Split, TakesEverySampleOnce) {
  const Named set = plain(20);
  const Split split = split_samples(set, 0.25, 3);

  EXPECT_EQ(split.validation.size(), 5U);
  std::set<std::int64_t> all(split.training.begin(), split.training.end());
  all.insert(split.validation.begin(), split.validation.end());
  EXPECT_EQ(all.size(), 20U);
  EXPECT_EQ(split.training.size(), 15U);
}

TEST(Split, DependsOnTheSeedAlone) {
  EXPECT_EQ(split_samples(plain(40), 0.25, 3).validation, split_samples(plain(40), 0.25, 3).validation);
  EXPECT_NE(split_samples(plain(40), 0.25, 3).validation, split_samples(plain(40), 0.25, 4).validation);
}

TEST(Split, KeepsTheCubesOfAUniverseTogether) {
  const Named set = cubes(10);
  const Split split = split_samples(set, 0.3, 1);

  EXPECT_EQ(split.validation.size(), 3U * 8U);
  std::map<std::int64_t, int> per_universe;
  for (const std::int64_t sample : split.validation) ++per_universe[sample / 8];
  EXPECT_EQ(per_universe.size(), 3U);
  for (const auto& [universe, count] : per_universe) EXPECT_EQ(count, 8) << universe;
}

TEST(Split, LeavesSomethingOnBothSides) {
  EXPECT_EQ(split_samples(plain(4), 0.01, 1).validation.size(), 1U);
  EXPECT_EQ(split_samples(plain(2), 0.9, 1).training.size(), 1U);
  test::expect_error(base::Exit::bad_data, "only one sample or universe", [] { split_samples(plain(1), 0.5, 1); });
  test::expect_error(base::Exit::bad_data, "only one sample or universe", [] { split_samples(cubes(1), 0.5, 1); });
}

TEST(Split, GroupsByNameBeforeTheCube) {
  EXPECT_EQ(group_of("a/universe_00012_d0_h1_w3.h5"), "a/universe_00012");
  EXPECT_EQ(group_of("a/universe_00012.h5"), "a/universe_00012.h5");
  EXPECT_EQ(group_of("my_data_d0.h5"), "my_data_d0.h5");
  EXPECT_EQ(group_of("my_data.v2_d0_h64_w0.h5"), "my_data.v2");
  EXPECT_EQ(group_of("a_d0_h0_w.h5"), "a_d0_h0_w.h5");
  EXPECT_EQ(group_of(""), "");
  EXPECT_EQ(group_of("x_d0_h0_w0.d/volume.h5"), "x_d0_h0_w0.d/volume.h5");
}

}  // namespace
}  // namespace orthant::train
