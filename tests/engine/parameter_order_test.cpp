#include "orthant/engine/parameter_order.hpp"

#include "orthant/plan/request.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace orthant::engine {
namespace {

/// Convolutions with and without groups, a transposed one, a concatenation whose channels come in two ranges, a dense
/// layer.
model::Graph graph() {
  const tensor::Window three{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  model::GraphBuilder builder("boxes", 3, {.n = 2, .c = 4, .d = 4, .h = 4, .w = 4});
  builder.add("conv1", model::Conv{.filters = 6, .window = three});
  builder.add("conv2", model::Conv{.filters = 8, .window = three, .groups = 2});
  builder.add("norm", model::BatchNorm{});
  builder.add("conv3", model::Conv{.filters = 4, .window = {.size = tensor::cube(1)}});
  builder.add("flatten", model::Flatten{});
  builder.add("fc", model::Dense{.features = 3});
  return builder.finish({{{model::LossKind::mean_squared_error, 1}}});
}

/// The items of a box in the order of files, as indices into the whole parameter.
std::vector<std::size_t> indices_of(const ParameterBox& box, const ParameterBox& whole) {
  std::vector<std::size_t> indices;
  for (std::int64_t first = box.first.lo; first < box.first.hi; ++first) {
    for (std::int64_t second = box.second.lo; second < box.second.hi; ++second) {
      for (std::int64_t tap = box.taps.lo; tap < box.taps.hi; ++tap)
        indices.push_back(static_cast<std::size_t>((first * whole.second.hi + second) * whole.taps.hi + tap));
    }
  }
  return indices;
}

/// Puts the parts of `items` where they belong and compares with to_file_order(), item by item.
void expect_same(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                 const tensor::Range& items) {
  std::vector<float> memory(static_cast<std::size_t>(items.hi - items.lo));
  std::iota(memory.begin(), memory.end(), 1.0F);
  std::vector<float> expected(static_cast<std::size_t>(model::count(parameter))), found(expected.size());
  to_file_order(graph, parameter, shard, items, memory, expected);
  const KernelOrder order(graph, parameter, shard);
  for (const KernelOrder::Part& part : order.parts_of(items)) {
    std::vector<float> file(static_cast<std::size_t>(volume(part.box)));
    order.to_file_order(part, items, memory, file);
    const std::vector<std::size_t> places = indices_of(part.box, whole_box(parameter));
    for (std::size_t i = 0; i < places.size(); ++i) {
      EXPECT_EQ(found[places[i]], 0) << parameter.name << " has an item twice";
      found[places[i]] = file[i];
    }
  }
  EXPECT_EQ(found, expected) << parameter.name << " [" << items.lo << ", " << items.hi << ")";
}

TEST(ParameterOrder, PartsHaveEveryItemOnce) {
  const model::Graph network = graph();
  for (const char* grid : {"n1", "f2", "n2f2"}) {
    const int ranks = std::string(grid) == "n1" ? 1 : std::string(grid) == "f2" ? 2 : 4;
    const plan::Plan plan = plan::make_plan(network, {.grid = grid}, ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      for (const model::Parameter& parameter : model::parameters(network)) {
        const plan::Shard shard = plan::shard_of(plan, network, parameter, rank);
        const std::int64_t count = plan::count(parameter, shard);
        for (const tensor::Range items : {tensor::Range{0, count}, tensor::Range{count / 3, count / 2},
                                          tensor::Range{count / 7 + 1, count - 1}, tensor::Range{5, 6}}) {
          if (items.lo < items.hi && items.hi <= count) expect_same(network, parameter, shard, items);
        }
      }
    }
  }
}

TEST(ParameterOrder, AWholeParameterIsOnePart) {
  const model::Graph network = graph();
  const plan::Plan plan = plan::serial_plan(network);
  for (const model::Parameter& parameter : model::parameters(network)) {
    const KernelOrder order(network, parameter, plan::shard_of(plan, network, parameter, 0));
    const auto parts = order.parts_of({0, model::count(parameter)});
    ASSERT_EQ(parts.size(), 1U) << parameter.name;
    EXPECT_EQ(parts.front().box, whole_box(parameter));
  }
}

}  // namespace
}  // namespace orthant::engine
