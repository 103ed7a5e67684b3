#include "orthant/data/sets/transform.hpp"

#include "tests/data/temporary.hpp"

#include <cmath>

namespace orthant {
namespace {

using data::sets::TransformedDataset;

constexpr data::sets::SampleShape shape{.input = {.n = 1, .c = 2, .d = 3, .h = 4, .w = 5}, .target = {.n = 1, .c = 1}};

/// Numbers count up channels-last, from `first` on in steps.
class Counting final : public data::sets::Dataset {
 public:
  Counting(float first, float step) : first_(first), step_(step) {}
  [[nodiscard]] std::int64_t samples() const override { return 1; }
  void read_input(std::int64_t, const tensor::Box& box, std::span<float> into) const override {
    std::size_t item = 0;
    for (std::int64_t d = box.lo.d; d < box.hi.d; ++d)
      for (std::int64_t h = box.lo.h; h < box.hi.h; ++h)
        for (std::int64_t w = box.lo.w; w < box.hi.w; ++w)
          for (std::int64_t c = box.lo.c; c < box.hi.c; ++c)
            into[item++] = first_ + step_ * static_cast<float>(((d * 4 + h) * 5 + w) * 2 + c);
  }
  void read_values(std::int64_t, const tensor::Box&, std::span<float> into) const override { into[0] = 7; }
  void read_labels(std::int64_t, const tensor::Box&, std::span<std::int32_t> into) const override { into[0] = 3; }
  [[nodiscard]] std::int64_t bytes_read() const override { return 99; }

 private:
  float first_, step_;
};

TransformedDataset make(std::vector<data::sets::Transform> transforms, float first = 0, float step = 1) {
  return {std::make_unique<Counting>(first, step), std::move(transforms), shape};
}

TEST(Transform, AppliesInOrderByChannel) {
  const TransformedDataset set = make(
      {data::sets::Log1p{}, data::sets::Scale{2}, data::sets::Normalise{.mean = {1, 3}, .deviation = {4}}}, 0, 0.5F);
  std::vector<float> items(3 * 4 * 5 * 2);

  set.read_input(0, tensor::whole(shape.input), items);

  for (std::size_t i = 0; i < items.size(); ++i) {
    const double x = 2 * std::log1p(0.5 * static_cast<double>(i));
    EXPECT_NEAR(items[i], (x - (i % 2 == 0 ? 1 : 3)) / 4, 1e-6);
  }
}

TEST(Transform, ABoxIsPartOfTheWholeBitForBit) {
  const TransformedDataset set =
      make({data::sets::Scale{0.3}, data::sets::Log1p{}, data::sets::Normalise{{0.1, 0.7}, {0.3, 1.1}}});
  const tensor::Box box{.lo = {0, 1, 1, 2, 0}, .hi = {1, 2, 3, 4, 3}};
  std::vector<float> whole(3 * 4 * 5 * 2);
  std::vector<float> part(2 * 2 * 3);

  set.read_input(0, tensor::whole(shape.input), whole);
  set.read_input(0, box, part);

  std::size_t item = 0;
  for (std::size_t d = 1; d < 3; ++d)
    for (std::size_t h = 2; h < 4; ++h)
      for (std::size_t w = 0; w < 3; ++w) EXPECT_EQ(part[item++], whole[((d * 4 + h) * 5 + w) * 2 + 1]);
}

TEST(Transform, LeavesTargetsAlone) {
  const TransformedDataset set = make({data::sets::Scale{2}});
  std::vector<float> value(1);
  std::vector<std::int32_t> label(1);
  set.read_values(0, tensor::whole(shape.target), value);
  set.read_labels(0, tensor::whole(shape.target), label);

  EXPECT_EQ(value[0], 7);
  EXPECT_EQ(label[0], 3);
  EXPECT_EQ(set.bytes_read(), 99);
  EXPECT_EQ(set.samples(), 1);
}

TEST(Transform, NamesWhatIsNoLongerFinite) {
  const TransformedDataset set = make({data::sets::Log1p{}}, 12, -1);
  std::vector<float> items(3 * 4 * 5 * 2);

  test::expect_error(base::Exit::bad_data, "sample 0 at channel 1, [0, 1, 1] becomes -inf after the transforms",
                     [&] { set.read_input(0, tensor::whole(shape.input), items); });
}

TEST(Transform, RefusesListsOfAnotherLength) {
  test::expect_error(base::Exit::bad_data, "normalise has 3 numbers in mean, but the input has 2 channels", [] {
    make({data::sets::Normalise{.mean = {1, 2, 3}, .deviation = {1}}});
  });
}

}  // namespace
}  // namespace orthant
