#include "orthant/base/error.hpp"
#include "orthant/kernels/conv.hpp"
#include "tests/kernels/shape_list.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/random.hpp"
#include "tests/support/region.hpp"

#include <gtest/gtest.h>

namespace orthant::test {
namespace {

using model::Algorithm;
using model::ConvTask;
using model::Pass;
using model::PrepareWeightsTask;

constexpr int threads = 2;

Region filled(const tensor::Layout& layout, std::uint64_t seed) {
  Region region(ItemType::float32, end_of(layout));
  Random random(seed);
  for (std::int64_t i = 0; i < region.items(); ++i) region.set(i, random.real(-1, 1));
  return region;
}

void run(const model::Task& task, const std::vector<void*>& arguments) {
  const auto primitive = kernels::make_primitive(task, threads);
  Region scratch(ItemType::uint8, primitive->scratch_bytes());
  primitive->execute({}, arguments, scratch.data());
  EXPECT_TRUE(scratch.guards_are_intact()) << primitive->name();
}

/// The memory of a task on weights as they are; results begin as NaN.
struct Memory {
  explicit Memory(const ConvTask& task) {
    for (const Argument& argument : arguments_of(task)) {
      regions.push_back(argument.access == Access::read ? filled(argument.layout, regions.size())
                                                        : Region(argument.type, end_of(argument.layout)));
    }
  }

  /// Those of the task, with other weights if there are any.
  std::vector<void*> arguments(Region* weights = nullptr) {
    std::vector<void*> all;
    for (Region& region : regions) all.push_back(region.data());
    if (weights) all[1] = weights->data();
    return all;
  }
  [[nodiscard]] const Region& result() const { return regions.back(); }

  std::vector<Region> regions;
};

Region prepared(const ConvTask& task, Memory& memory) {
  Region region(ItemType::uint8, task.prepared_bytes);
  run(PrepareWeightsTask{task}, {memory.regions[1].data(), region.data()});
  EXPECT_TRUE(region.guards_are_intact());
  return region;
}

ConvTask with_prepared_weights(ConvTask task) {
  task.prepared_bytes = kernels::prepared_weights(task, threads).bytes;
  return task;
}

/// Some samples of the task's.
ConvTask samples_of(ConvTask task, std::int64_t first, std::int64_t count) {
  for (tensor::Layout* layout : {&task.src, &task.dst}) {
    layout->offset += first * layout->strides.n;
    layout->extents.n = count;
  }
  return task;
}

class PreparedWeights : public testing::Test {
 protected:
  /// Calls visit(task) for the forward and backward_data tasks of the list that an algorithm prepares weights for.
  template <class Visit>
  void for_each_task(Algorithm algorithm, Room room, Visit visit) {
    for (const ShapeLine& line : read_shapes(ORTHANT_SHAPES "/conv_shapes.txt")) {
      for (const Pass pass : {Pass::forward, Pass::backward_data}) {
        ConvTask task{.pass = pass,
                      .window = line.window,
                      .groups = line.g,
                      .bias = pass == Pass::forward,
                      .src = layout_with(room, src_shape(line)),
                      .dst = layout_with(room, dst_shape(line)),
                      .algorithm = algorithm};
        if (kernels::conv_candidates(task, threads).front().algorithm != algorithm) continue;
        task = with_prepared_weights(task);
        if (task.prepared_bytes == 0) continue;
        ++count_;
        SCOPED_TRACE(line.text);
        visit(task);
      }
    }
  }

  void expect_same_bits(Algorithm algorithm, int least_tasks);
  void expect_shared_by_samples(Algorithm algorithm);

  int count_ = 0;   ///< tasks with prepared weights
  int shared_ = 0;  ///< those whose weights serve any number of samples
};

ConvTask unprepared(ConvTask task) {
  task.prepared_bytes = 0;
  return task;
}

void PreparedWeights::expect_same_bits(Algorithm algorithm, int least_tasks) {
  for (const Room room : {Room::none, Room::both}) {
    for_each_task(algorithm, room, [](const ConvTask& task) {
      Memory plain(unprepared(task)), other(unprepared(task));
      run(unprepared(task), plain.arguments());
      Region weights = prepared(task, other);
      run(task, other.arguments(&weights));
      EXPECT_TRUE(plain.result().same_bytes(other.result()));
      EXPECT_LT(kernels::make_primitive(task, threads)->scratch_bytes(),
                kernels::make_primitive(unprepared(task), threads)->scratch_bytes());
    });
  }
  EXPECT_GE(count_, least_tasks);
}

TEST_F(PreparedWeights, WinogradGivesTheSameBits) { expect_same_bits(Algorithm::winograd, 100); }
TEST_F(PreparedWeights, LargeWinogradGivesTheSameBits) { expect_same_bits(Algorithm::winograd_large, 50); }
TEST_F(PreparedWeights, StagedWinogradGivesTheSameBits) { expect_same_bits(Algorithm::winograd_staged, 50); }
TEST_F(PreparedWeights, OnednnGivesTheSameBits) { expect_same_bits(Algorithm::onednn, 100); }

void PreparedWeights::expect_shared_by_samples(Algorithm algorithm) {
  for_each_task(algorithm, Room::none, [&](ConvTask task) {
    task = unprepared(task);
    const std::int64_t samples = task.src.extents.n + 2;
    for (tensor::Layout* layout : {&task.src, &task.dst}) {
      layout->extents.n = samples;
      *layout = tensor::channels_last(layout->extents);
    }
    const auto can_run = [&](const ConvTask& one) {
      return kernels::conv_candidates(unprepared(one), threads).front().algorithm == algorithm;
    };
    if (!can_run(task)) return;
    task = with_prepared_weights(task);
    if (task.prepared_bytes == 0) return;
    Memory plain(unprepared(task)), other(unprepared(task));
    Region weights = prepared(task, other);
    for (const ConvTask& part : {samples_of(task, 0, 1), samples_of(task, 1, samples - 1)}) {
      if (!can_run(part)) return;
      const std::string form = kernels::prepared_weights(part, threads).form;
      if (form != kernels::prepared_weights(task, threads).form) return;
      run(unprepared(part), plain.arguments());
      run(part, other.arguments(&weights));
    }
    ++shared_;
    EXPECT_TRUE(plain.result().same_bytes(other.result()));
  });
}

TEST_F(PreparedWeights, OfWinogradServeAnyNumberOfSamples) {
  expect_shared_by_samples(Algorithm::winograd);
  EXPECT_EQ(shared_, count_);
}

/// Where oneDNN takes another order for another number of samples, the forms differ.
TEST_F(PreparedWeights, OfOnednnServeSamplesWithTheSameForm) {
  expect_shared_by_samples(Algorithm::onednn);
  EXPECT_GE(shared_, 50);
}

ConvTask small_task(Pass pass, std::int64_t channels, Algorithm algorithm) {
  return {.pass = pass,
          .window = {.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)},
          .src = tensor::channels_last({2, channels, 8, 8, 8}),
          .dst = tensor::channels_last({2, 32, 8, 8, 8}),
          .algorithm = algorithm};
}

TEST_F(PreparedWeights, AreNotForKernelsThatTakeThemAsTheyAre) {
  using enum Algorithm;
  for (const ConvTask& task :
       {small_task(Pass::forward, 32, direct), small_task(Pass::backward_weights, 32, winograd),
        small_task(Pass::backward_weights, 32, onednn), small_task(Pass::forward, 4, winograd)}) {
    EXPECT_EQ(kernels::prepared_weights(task, threads).bytes, 0) << model::name_of(task.algorithm);
  }
}

TEST_F(PreparedWeights, HaveFormsThatTellThemApart) {
  const auto form = [](const ConvTask& task) { return kernels::prepared_weights(task, threads).form; };
  const ConvTask task = small_task(Pass::forward, 32, Algorithm::winograd);
  EXPECT_NE(form(task), "");
  EXPECT_NE(form(task), form(small_task(Pass::backward_data, 32, Algorithm::winograd)));
  EXPECT_NE(form(task), form(small_task(Pass::forward, 32, Algorithm::onednn)));
  ConvTask flat = task;
  flat.window.size.d = 1;
  flat.window.pad_lo.d = flat.window.pad_hi.d = 0;
  EXPECT_NE(form(task), form(flat));
}

TEST_F(PreparedWeights, OfAnotherSizeAreRefused) {
  ConvTask task = with_prepared_weights(small_task(Pass::forward, 32, Algorithm::winograd));
  ASSERT_GT(task.prepared_bytes, 0);
  task.prepared_bytes += 64;
  EXPECT_THROW(kernels::make_primitive(task, threads), base::Error);
  EXPECT_THROW(kernels::make_primitive(PrepareWeightsTask{task}, threads), base::Error);
  EXPECT_THROW(kernels::make_primitive(PrepareWeightsTask{unprepared(task)}, threads), base::Error);
}

TEST_F(PreparedWeights, LeaveOneWayToRunATask) {
  const ConvTask task = with_prepared_weights(small_task(Pass::forward, 32, Algorithm::winograd));
  const auto candidates = kernels::conv_candidates(task, threads);
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_EQ(candidates.front().algorithm, Algorithm::winograd);
}

}  // namespace
}  // namespace orthant::test
