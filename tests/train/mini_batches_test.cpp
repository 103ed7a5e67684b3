#include "orthant/train/mini_batches.hpp"

#include "orthant/data/generate/synthetic.hpp"
#include "orthant/train/open_data.hpp"
#include "tests/data/temporary.hpp"
#include "tests/train/small_network.hpp"

namespace orthant::train {
namespace {

data::generate::SyntheticDataset made_up(const model::Graph& graph, std::int64_t samples) {
  return {sample_shape(graph), samples, 1};
}

TEST(MiniBatches, CutEpochsWithoutAGap) {
  const model::Graph graph = test::small_graph(2);
  const auto set = made_up(graph, 5);
  const MiniBatches batches(set, graph, {});

  EXPECT_EQ(batches.mini_batch(), 2);
  EXPECT_EQ(batches.steps_per_epoch(), 3);
  EXPECT_EQ(batches.steps_of(2), 5);
  EXPECT_EQ(batches.steps_of(4), 10);
  // The third step has the last sample of the first epoch and the first one of the second.
  EXPECT_EQ(batches.epoch_of(3), 1);
  EXPECT_EQ(batches.epoch_of(4), 2);
  EXPECT_EQ(batches.epoch_of(6), 3);
}

TEST(MiniBatches, RefusesLessThanAMiniBatch) {
  const model::Graph graph = test::small_graph();
  const auto set = made_up(graph, 1);

  test::expect_error(base::Exit::bad_data, "1 samples, fewer than a mini-batch of 2",
                     [&] { MiniBatches(set, graph, {}); });
}

}  // namespace
}  // namespace orthant::train
