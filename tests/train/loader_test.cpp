#include "orthant/train/loader.hpp"

#include "tests/data/temporary.hpp"
#include "tests/train/small_network.hpp"

#include <set>

namespace orthant::train {
namespace {

/// Sample i is all i; what was read is written down.
class Counting final : public data::Dataset {
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
  Loader loader(set, graph, {});

  loader.load(2, engine);

  EXPECT_EQ(loader.steps_per_epoch(), 2);
  EXPECT_EQ(set.read, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(engine.floats(engine.schedule().inputs.front().buffer).front(), 2);
  EXPECT_EQ(engine.floats(engine.schedule().inputs.front().buffer).back(), 3);
  EXPECT_EQ(engine.floats(engine.schedule().targets.front().buffer).back(), -3);
}

TEST(Loader, ShufflesEveryEpochAnew) {
  const model::Graph graph = test::small_graph(1);
  engine::Engine engine = test::small_engine(graph);
  const Counting set(16);
  Loader loader(set, graph, {.shuffle = true, .seed = 1});

  for (std::int64_t step = 1; step <= 32; ++step) loader.load(step, engine);

  const std::vector<std::int64_t> first(set.read.begin(), set.read.begin() + 16);
  const std::vector<std::int64_t> second(set.read.begin() + 16, set.read.end());
  EXPECT_EQ(std::set<std::int64_t>(first.begin(), first.end()).size(), 16U);
  EXPECT_EQ(std::set<std::int64_t>(second.begin(), second.end()).size(), 16U);
  EXPECT_NE(first, second);
}

TEST(Loader, RefusesLessThanAMiniBatch) {
  const model::Graph graph = test::small_graph();
  const Counting set(1);

  test::expect_error(base::Exit::bad_data, "1 samples, fewer than a mini-batch of 2", [&] { Loader(set, graph, {}); });
}

}  // namespace
}  // namespace orthant::train
