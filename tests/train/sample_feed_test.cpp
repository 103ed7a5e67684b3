#include "orthant/train/sample_feed.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/typed.hpp"
#include "orthant/plan/strategy.hpp"
#include "tests/data/temporary.hpp"
#include "tests/support/thread_comm.hpp"

#include <atomic>

namespace orthant::train {
namespace {

using data::sets::Role;
using tensor::Box;
using tensor::Shape;

/// Every number says of which sample and place it is.
std::int32_t number_at(std::int64_t sample, Role role, const Shape& at) {
  return static_cast<std::int32_t>(
      ((((sample * 2 + static_cast<std::int64_t>(role)) * 8 + at.d) * 8 + at.h) * 8 + at.w) * 8 + at.c);
}

/// Counts four bytes per number; one sample may be bad.
class Numbers final : public data::sets::Dataset {
 public:
  explicit Numbers(std::int64_t samples, std::int64_t bad = -1) : samples_(samples), bad_(bad) {}
  [[nodiscard]] std::int64_t samples() const override { return samples_; }
  void read_input(std::int64_t sample, const Box& box, std::span<float> into) const override {
    if (sample == bad_) base::fail(base::Exit::bad_data, "sample {} is bad", sample);
    fill(sample, Role::source, box, into);
  }
  void read_values(std::int64_t sample, const Box& box, std::span<float> into) const override {
    fill(sample, Role::target, box, into);
  }
  void read_labels(std::int64_t sample, const Box& box, std::span<std::int32_t> into) const override {
    fill(sample, Role::target, box, into);
  }
  [[nodiscard]] std::int64_t bytes_read() const override { return bytes_; }

 private:
  template <class T>
  void fill(std::int64_t sample, Role role, const Box& box, std::span<T> into) const {
    std::size_t item = 0;
    Shape at;
    for (at.d = box.lo.d; at.d < box.hi.d; ++at.d)
      for (at.h = box.lo.h; at.h < box.hi.h; ++at.h)
        for (at.w = box.lo.w; at.w < box.hi.w; ++at.w)
          for (at.c = box.lo.c; at.c < box.hi.c; ++at.c) into[item++] = static_cast<T>(number_at(sample, role, at));
    bytes_ += static_cast<std::int64_t>(into.size()) * 4;
  }

  std::int64_t samples_, bad_;
  mutable std::atomic<std::int64_t> bytes_ = 0;
};

constexpr tensor::Window three{.size = {3, 3, 3}, .pad_lo = {1, 1, 1}, .pad_hi = {1, 1, 1}};

model::Graph values_graph(std::int64_t mini_batch) {
  model::GraphBuilder builder("values", 3, {.n = mini_batch, .c = 2, .d = 6, .h = 6, .w = 6});
  builder.add("conv1", model::Conv{.filters = 4, .window = three});
  builder.add("conv2", model::Conv{.filters = 4, .window = three});
  builder.add("flatten", model::Flatten{});
  builder.add("fc1", model::Dense{.features = 3});
  return builder.finish({{{model::LossKind::mean_squared_error, 1}}});
}

model::Graph labels_graph(std::int64_t mini_batch) {
  model::GraphBuilder builder("labels", 3, {.n = mini_batch, .c = 1, .d = 6, .h = 6, .w = 6});
  builder.add("conv1", model::Conv{.filters = 4, .window = three});
  builder.add("conv2", model::Conv{.filters = 3, .window = three});
  return builder.finish({{{model::LossKind::cross_entropy, 1}}});
}

struct Case {
  std::string grid;
  std::int64_t mini_batch = 2, samples = 5;
  bool labels = false;
  data::sets::Augmentation augment{};
  std::int64_t limit_bytes = 1 << 20;
  std::int64_t epochs = 3;
  std::uint64_t seed = 3;
};

/// The engine's memory holds the boxes of the samples that the stream has, turned, cell by cell.
void expect_loaded(const Case& wanted, std::int64_t step, SampleStream& stream, engine::Engine& engine) {
  std::int64_t wrong = 0;
  for (const Slot& slot : slots_of(engine.schedule())) {
    const Draw draw = stream.at((step - 1) * wanted.mini_batch + slot.n);
    const Shape& shape = slot.role == Role::source ? stream.shape().input : stream.shape().target;
    const bool single = shape.d * shape.h * shape.w == 1;
    Shape at;
    for (at.d = slot.box.lo.d; at.d < slot.box.hi.d; ++at.d)
      for (at.h = slot.box.lo.h; at.h < slot.box.hi.h; ++at.h)
        for (at.w = slot.box.lo.w; at.w < slot.box.hi.w; ++at.w)
          for (at.c = slot.box.lo.c; at.c < slot.box.hi.c; ++at.c) {
            Shape from = at;
            std::int64_t item = slot.layout.offset + (at.c - slot.box.lo.c) * slot.layout.strides.c;
            for (std::size_t i = 0; i < 3; ++i) {
              const tensor::Dim dim = tensor::spatial_dims.at(i);
              item += (at[dim] - slot.box.lo[dim]) * slot.layout.strides[dim];
              const bool flipped = !single && draw.orientation.flipped.at(i);
              const auto source = static_cast<std::size_t>(single ? static_cast<int>(i) : draw.orientation.from.at(i));
              from[tensor::spatial_dims.at(source)] = flipped ? shape[dim] - 1 - at[dim] : at[dim];
            }
            const std::int32_t expected = number_at(draw.sample, slot.role, from);
            const auto index = static_cast<std::size_t>(item);
            const bool label = slot.role == Role::target && wanted.labels;
            wrong += label ? engine.labels(slot.buffer)[index] != expected
                           : engine.floats(slot.buffer)[index] != static_cast<float>(expected);
          }
  }
  EXPECT_EQ(wrong, 0) << wanted.grid << " step " << step;
}

/// What all ranks take of some samples by the schedules, without the code under test.
std::int64_t bytes_of_samples(const model::Graph& graph, const plan::Plan& plan, std::int64_t first, std::int64_t end) {
  std::int64_t bytes = 0;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const schedule::Schedule schedule = schedule::lower(graph, plan, rank, {});
    for (const auto& ports : {schedule.inputs, schedule.targets})
      for (const schedule::Port& port : ports)
        for (std::int64_t i = first; port.buffer >= 0 && i < end; ++i) {
          const std::int64_t n = i % graph.nodes.front().shape.n;
          if (n < port.box.lo.n || n >= port.box.hi.n) continue;
          bytes += tensor::volume(port.box) / (port.box.hi.n - port.box.lo.n) * 4;
        }
  }
  return bytes;
}

void check(const Case& wanted) {
  SCOPED_TRACE(fmt::format("{} of {} samples in {}", wanted.grid, wanted.samples, wanted.mini_batch));
  const model::Graph graph = wanted.labels ? labels_graph(wanted.mini_batch) : values_graph(wanted.mini_batch);
  const plan::Plan plan = plan::make_plan(graph, plan::parse_grid(wanted.grid));
  const StreamOptions stream_options{.shuffle = true, .seed = wanted.seed, .augment = wanted.augment};
  test::run_threads(plan.ranks, [&](comm::Comm& comm) {
    engine::Engine engine(schedule::lower(graph, plan, comm.rank(), {}), comm, {.threads = 1, .before_allocation = {}});
    const Numbers set(wanted.samples);
    const MiniBatches batches(set, graph, stream_options);
    SampleStream stream = batches.stream();
    const std::int64_t steps = batches.steps_of(wanted.epochs);
    SampleFeed feed(batches, engine, comm, {.steps = steps, .keep = true, .limit_bytes = wanted.limit_bytes});

    for (std::int64_t step = 1; step <= steps; ++step) {
      feed.load(step);
      expect_loaded(wanted, step, stream, engine);
    }
    feed.finish();

    const std::vector<EpochIo> epochs = feed.totals();
    const std::int64_t kept = feed.store().samples;
    EXPECT_EQ(epochs[0].file_bytes, bytes_of_samples(graph, plan, 0, wanted.samples));
    EXPECT_EQ(feed.store().bytes, bytes_of_samples(graph, plan, 0, kept));
    EXPECT_LE(feed.held_bytes(), wanted.limit_bytes);
    EXPECT_EQ(epochs[0].store_bytes_sent, 0);
    std::int64_t sent = 0;
    for (std::size_t i = 1; i < epochs.size(); ++i) {
      sent += epochs[i].store_bytes_sent;
      const bool is_whole = static_cast<std::int64_t>(i) < wanted.epochs;
      EXPECT_TRUE(kept < wanted.samples || epochs[i].file_bytes == 0);
      EXPECT_TRUE(kept == wanted.samples || !is_whole || epochs[i].file_bytes > 0);
    }
    const auto traffic = comm.traffic();
    EXPECT_EQ(comm::sum(comm, traffic.contains("store") ? traffic.at("store").bytes : 0), sent);
  });
}

TEST(SampleFeed, EveryRankGetsItsBoxesAndReadsThemOnce) {
  for (const char* grid : {"1", "d2", "d2h2", "d3", "n2", "n2d2", "w2", "n2w2", "p2", "n2f2"}) {
    check({.grid = grid});
    check({.grid = grid, .mini_batch = 4, .samples = 6});
    check({.grid = grid, .samples = 4, .labels = true});
  }
}

TEST(SampleFeed, MiniBatchesAsLargeAsTheSetMeetASampleTwice) {
  for (const char* grid : {"n3", "n2", "d2"}) {
    check({.grid = grid, .mini_batch = 4, .samples = 4});
    for (std::uint64_t seed = 0; seed < 5; ++seed)
      check({.grid = grid, .mini_batch = 4, .samples = 5, .epochs = 7, .seed = seed});
  }
}

TEST(SampleFeed, TurnedSamplesComeTogetherFromThoseWhoKeepThem) {
  const data::sets::Augmentation augment{.flip = {true, true, true}, .permute = true};
  for (const char* grid : {"1", "d2", "d2h2", "d3", "n2d2", "n2w2"}) {
    check({.grid = grid, .augment = augment, .epochs = 5});
    check({.grid = grid, .labels = true, .augment = augment, .epochs = 5});
  }
}

TEST(SampleFeed, KeepsWhatFitsAndReadsTheRest) {
  for (const char* grid : {"1", "d2", "n2d2", "n2"})
    for (const std::int64_t limit : {0, 1, 3000, 4000, 6000, 8000}) check({.grid = grid, .limit_bytes = limit});
}

TEST(SampleFeed, KeepsNothingThatIsUsedOnce) { check({.grid = "1", .mini_batch = 2, .samples = 4, .epochs = 1}); }

TEST(SampleFeed, ErrorsOfTheThreadComeWithTheStepThatNeedsTheSample) {
  const model::Graph graph = values_graph(1);
  test::run_threads(1, [&](comm::Comm& comm) {
    engine::Engine engine(schedule::lower(graph, plan::serial_plan(graph), 0, {}), comm, {.threads = 1});
    const Numbers set(4, 2);
    const MiniBatches batches(set, graph, {});
    SampleFeed feed(batches, engine, comm, {.steps = 4, .keep = false});
    feed.load(1);
    feed.load(2);
    test::expect_error(base::Exit::bad_data, "sample 2 is bad", [&] { feed.load(3); });
  });
}

TEST(SampleFeed, StopsWithSamplesOnTheirWay) {
  const model::Graph graph = values_graph(2);
  const plan::Plan plan = plan::make_plan(graph, plan::parse_grid("n2"));
  for (std::int64_t last = 1; last < 8; ++last) {
    test::run_threads(2, [&](comm::Comm& comm) {
      engine::Engine engine(schedule::lower(graph, plan, comm.rank(), {}), comm, {.threads = 1});
      const Numbers set(3);
      const MiniBatches batches(set, graph, {.shuffle = true, .seed = 1});
      SampleFeed feed(batches, engine, comm, {.steps = 9, .keep = true, .limit_bytes = 1 << 20});
      for (std::int64_t step = 1; step <= last; ++step) feed.load(step);
      feed.finish();
    });
  }
}

}  // namespace
}  // namespace orthant::train
