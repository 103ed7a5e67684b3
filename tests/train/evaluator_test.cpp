#include "orthant/train/evaluator.hpp"

#include "orthant/base/random.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/train/loader.hpp"
#include "orthant/train/weights.hpp"
#include "tests/data/temporary.hpp"
#include "tests/support/thread_comm.hpp"
#include "tests/train/small_network.hpp"

#include <cmath>
#include <mutex>

namespace orthant::train {
namespace {

/// Random numbers that depend on sample and place alone.
class Random final : public data::sets::Dataset {
 public:
  Random(std::int64_t samples, std::int32_t classes) : samples_(samples), classes_(classes) {}
  [[nodiscard]] std::int64_t samples() const override { return samples_; }
  void read_input(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override {
    std::size_t item = 0;
    visit(box, [&](std::uint64_t place) { into[item++] = static_cast<float>(base::normal(key(sample), place)); });
  }
  void read_values(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override {
    std::size_t item = 0;
    visit(box, [&](std::uint64_t place) { into[item++] = static_cast<float>(base::normal(key(-sample - 1), place)); });
  }
  void read_labels(std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) const override {
    std::size_t item = 0;
    visit(box, [&](std::uint64_t place) {
      into[item++] = static_cast<std::int32_t>(base::keyed(key(sample), place) % static_cast<unsigned>(classes_));
    });
  }

 private:
  static std::uint64_t key(std::int64_t sample) { return base::keyed(9, static_cast<std::uint64_t>(sample)); }
  template <class Visit>
  static void visit(const tensor::Box& box, Visit visit) {
    for (std::int64_t d = box.lo.d; d < box.hi.d; ++d)
      for (std::int64_t h = box.lo.h; h < box.hi.h; ++h)
        for (std::int64_t w = box.lo.w; w < box.hi.w; ++w)
          for (std::int64_t c = box.lo.c; c < box.hi.c; ++c)
            visit(static_cast<std::uint64_t>(((d * 100 + h) * 100 + w) * 100 + c));
  }

  std::int64_t samples_;
  std::int32_t classes_;
};

/// A class per voxel; both kinds of losses that take labels.
model::Graph segments(std::int64_t mini_batch) {
  const tensor::Window three{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  model::GraphBuilder builder("segments", 3, {.n = mini_batch, .c = 2, .d = 4, .h = 4, .w = 4});
  builder.add("conv1", model::Conv{.filters = 4, .window = three});
  builder.add("norm1", model::BatchNorm{});
  builder.add("relu1", model::Activation{.kind = model::ActivationKind::relu});
  builder.add("conv2", model::Conv{.filters = 3, .window = three});
  return builder.finish({{{model::LossKind::cross_entropy, 1}, {model::LossKind::soft_dice, 0.5}}});
}

Scores score(const model::Graph& graph, const plan::Plan& plan, const data::sets::Dataset& dataset) {
  Scores scores;
  test::run_threads(plan.ranks, [&](comm::Comm& comm) {
    Evaluator evaluator(graph, plan, comm, {});
    evaluator.session().initialise_weights(5);
    const Scores mine = evaluator.score(dataset);
    if (comm.rank() == 0) scores = mine;
  });
  return scores;
}

Scores score(const model::Graph& graph, const data::sets::Dataset& dataset) {
  return score(graph, plan::serial_plan(graph), dataset);
}

void expect_near(const Scores& actual, const Scores& expected) {
  EXPECT_EQ(actual.samples, expected.samples);
  EXPECT_NEAR(actual.loss, expected.loss, 1e-5 * expected.loss);
  EXPECT_NEAR(actual.mean_squared_error, expected.mean_squared_error, 1e-5);
  EXPECT_NEAR(actual.mean_absolute_error, expected.mean_absolute_error, 1e-5);
  EXPECT_NEAR(actual.accuracy, expected.accuracy, 1e-5);
  EXPECT_NEAR(actual.mean_dice, expected.mean_dice, 1e-5);
  ASSERT_EQ(actual.channels.size(), expected.channels.size());
  for (std::size_t c = 0; c < actual.channels.size(); ++c) {
    EXPECT_NEAR(actual.channels[c].mean_squared_error, expected.channels[c].mean_squared_error, 1e-5);
    EXPECT_NEAR(actual.channels[c].target_variance, expected.channels[c].target_variance, 1e-9);
  }
  ASSERT_EQ(actual.dice.size(), expected.dice.size());
  for (std::size_t c = 0; c < actual.dice.size(); ++c) EXPECT_NEAR(*actual.dice[c], *expected.dice[c], 1e-5);
}

TEST(Evaluator, LossIsThatOfTheEngineForOneMiniBatch) {
  for (const model::Graph& graph : {test::small_graph(4), segments(4)}) {
    const Random set(4, 3);
    engine::Session session = test::small_session(graph, {.mode = schedule::Mode::evaluate, .update = false});
    session.initialise_weights(5);
    engine::Engine& engine = session.engine();
    Loader(MiniBatches(set, graph, {})).load(1, engine);
    engine.run({.step = 1, .seed = 0, .learning_rate = 0});

    EXPECT_NEAR(score(graph, set).loss, engine.losses().back(), 1e-9) << graph.name;
  }
}

TEST(Evaluator, MiniBatchesAndWhatFillsTheLastDoNotCount) {
  const Random set(7, 3);
  for (const std::int64_t mini_batch : {2, 3, 4, 8}) {
    expect_near(score(test::small_graph(mini_batch), set), score(test::small_graph(1), set));
    expect_near(score(segments(mini_batch), set), score(segments(1), set));
  }
}

TEST(Evaluator, EveryPlanScoresAlike) {
  const Random set(5, 3);
  for (const model::Graph& graph : {test::small_graph(2), segments(2)}) {
    const Scores alone = score(graph, set);
    for (const char* grid : {"n2", "d2", "h2", "d2h2", "n2d2", "f2", "p2"}) {
      SCOPED_TRACE(graph.name + " " + grid);
      expect_near(score(graph, plan::make_plan(graph, plan::parse_grid(grid)), set), alone);
    }
  }
  const model::Graph graph = test::small_graph(2);
  plan::Plan pieces = plan::serial_plan(graph);
  pieces.micro_batches = 2;
  expect_near(score(graph, pieces, set), score(graph, set));
}

TEST(Evaluator, TakesWeightsAndStatisticsOfTraining) {
  const model::Graph graph = test::small_graph(2);
  const plan::Plan plan = plan::serial_plan(graph);
  const Random set(4, 3);
  engine::Session session = test::small_session(graph);
  session.initialise_weights(5);
  engine::Engine& training = session.engine();
  Loader loader(MiniBatches(set, graph, {}));
  for (std::int64_t step = 1; step <= 3; ++step) {
    loader.load(step, training);
    training.run({.step = step, .seed = 0, .learning_rate = 0.05});
  }
  const test::TemporaryDirectory folder;
  save_weights(session, folder.file("w.safetensors"));
  Evaluator copied(graph, plan, test::alone(), {});
  Evaluator loaded(graph, plan, test::alone(), {});

  copied.copy_weights(training);
  load_weights(loaded.session(), folder.file("w.safetensors"));

  EXPECT_EQ(copied.score(set).loss, loaded.score(set).loss);
  EXPECT_NE(copied.score(set).loss, score(graph, set).loss);
}

TEST(Evaluator, RefusesWhatDoesNotFitBesidesTraining) {
  const model::Graph graph = test::small_graph(2);
  const plan::Plan plan = plan::serial_plan(graph);

  test::expect_error(base::Exit::does_not_fit, "GiB are available",
                     [&] { Evaluator(graph, plan, test::alone(), {.other_bytes = std::int64_t{1} << 50}); });
}

}  // namespace
}  // namespace orthant::train
