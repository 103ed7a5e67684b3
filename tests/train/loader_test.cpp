#include "orthant/train/loader.hpp"

#include "orthant/train/open_data.hpp"
#include "tests/data/temporary.hpp"
#include "tests/train/small_network.hpp"

#include <numeric>
#include <set>

namespace orthant::train {
namespace {

/// Sample i is all i; what was read is written down.
class Counting final : public data::sets::Dataset {
 public:
  explicit Counting(std::int64_t samples) : samples_(samples) {}
  [[nodiscard]] std::int64_t samples() const override { return samples_; }
  void read_input(std::int64_t sample, const tensor::Box&, std::span<float> into) const override {
    read.push_back(sample);
    std::fill(into.begin(), into.end(), static_cast<float>(sample));
  }
  void read_values(std::int64_t sample, const tensor::Box&, std::span<float> into) const override {
    std::fill(into.begin(), into.end(), static_cast<float>(-sample));
  }
  void read_labels(std::int64_t, const tensor::Box&, std::span<std::int32_t>) const override {}

  mutable std::vector<std::int64_t> read;

 private:
  std::int64_t samples_;
};

TEST(Loader, PutsSamplesIntoTheEngine) {
  const model::Graph graph = test::small_graph();
  engine::Engine engine = test::small_engine(graph);
  const Counting set(5);
  Loader loader(MiniBatches(set, graph, {}));

  loader.load(2, engine);

  EXPECT_EQ(set.read, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(engine.floats(engine.schedule().inputs.front().buffer).front(), 2);
  EXPECT_EQ(engine.floats(engine.schedule().inputs.front().buffer).back(), 3);
  EXPECT_EQ(engine.floats(engine.schedule().targets.front().buffer).back(), -3);
}

TEST(Loader, DropsNoSample) {
  const model::Graph graph = test::small_graph();
  engine::Engine engine = test::small_engine(graph);
  const Counting set(5);
  const MiniBatches batches(set, graph, {});
  Loader loader(batches);

  for (std::int64_t step = 1; step <= batches.steps_of(2); ++step) loader.load(step, engine);

  EXPECT_EQ(batches.steps_of(2), 5);
  EXPECT_EQ(batches.steps_of(1), 3);
  EXPECT_EQ(set.read, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
  EXPECT_EQ(batches.epoch_of(3), 1);
  EXPECT_EQ(batches.epoch_of(4), 2);
}

TEST(Loader, ShufflesEveryEpochAnew) {
  const model::Graph graph = test::small_graph(1);
  engine::Engine engine = test::small_engine(graph);
  const Counting set(16);
  Loader loader(MiniBatches(set, graph, {.shuffle = true, .seed = 1}));

  for (std::int64_t step = 1; step <= 32; ++step) loader.load(step, engine);

  const std::vector<std::int64_t> first(set.read.begin(), set.read.begin() + 16);
  const std::vector<std::int64_t> second(set.read.begin() + 16, set.read.end());
  EXPECT_EQ(std::set<std::int64_t>(first.begin(), first.end()).size(), 16U);
  EXPECT_EQ(std::set<std::int64_t>(second.begin(), second.end()).size(), 16U);
  EXPECT_NE(first, second);
}

/// Every number says where it is.
class Positions final : public data::sets::Dataset {
 public:
  [[nodiscard]] std::int64_t samples() const override { return 4; }
  void read_input(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override {
    std::size_t item = 0;
    for (std::int64_t d = box.lo.d; d < box.hi.d; ++d)
      for (std::int64_t h = box.lo.h; h < box.hi.h; ++h)
        for (std::int64_t w = box.lo.w; w < box.hi.w; ++w)
          for (std::int64_t c = box.lo.c; c < box.hi.c; ++c)
            into[item++] = static_cast<float>((((sample * 4 + d) * 4 + h) * 4 + w) * 2 + c);
  }
  void read_values(std::int64_t, const tensor::Box&, std::span<float> into) const override {
    std::iota(into.begin(), into.end(), 1.0F);
  }
  void read_labels(std::int64_t, const tensor::Box&, std::span<std::int32_t>) const override {}
};

TEST(Loader, TurnsSamplesAnewEveryEpoch) {
  const model::Graph graph = test::small_graph(1);
  engine::Engine engine = test::small_engine(graph);
  const Positions set;
  const StreamOptions options{.shuffle = false, .seed = 3, .augment = {.flip = {true, true, true}, .permute = true}};
  Loader loader(MiniBatches(set, graph, options));
  const data::sets::SampleShape shape = sample_shape(graph);
  int turned = 0;

  for (std::int64_t step = 1; step <= 16; ++step) {
    loader.load(step, engine);

    const data::sets::OrientationKey key{.seed = 3, .epoch = (step - 1) / 4, .sample = (step - 1) % 4};
    const data::sets::Orientation orientation = data::sets::orientation_of(options.augment, key, shape);
    std::vector<float> whole(4 * 4 * 4 * 2);
    set.read_input(key.sample, tensor::whole(shape.input), whole);
    std::vector<float> expected(whole.size());
    data::sets::turn<float>(orientation, whole, tensor::channels_last(shape.input), expected);
    const std::span<const float> loaded = engine.floats(engine.schedule().inputs.front().buffer);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), loaded.begin()));
    EXPECT_EQ(engine.floats(engine.schedule().targets.front().buffer)[2], 3);
    turned += expected == whole ? 0 : 1;
  }
  EXPECT_GT(turned, 12);
}

}  // namespace
}  // namespace orthant::train
