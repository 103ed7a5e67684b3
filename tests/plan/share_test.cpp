#include "orthant/plan/share.hpp"

#include "tests/plan/message.hpp"
#include "tests/tensor/draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace orthant::plan {
namespace {

using tensor::Box;
using tensor::Dim;
using tensor::Range;
using tensor::Shape;
using test::Draw;

template <class Visit>
void for_each_cell(const Box& box, Visit visit) {
  Shape at;
  for (at.n = box.lo.n; at.n < box.hi.n; ++at.n) {
    for (at.c = box.lo.c; at.c < box.hi.c; ++at.c) {
      for (at.d = box.lo.d; at.d < box.hi.d; ++at.d) {
        for (at.h = box.lo.h; at.h < box.hi.h; ++at.h) {
          for (at.w = box.lo.w; at.w < box.hi.w; ++at.w) visit(at);
        }
      }
    }
  }
}

bool holds(const std::vector<Box>& boxes, const Shape& at) {
  return std::any_of(boxes.begin(), boxes.end(), [&](const Box& box) {
    return std::all_of(tensor::all_dims.begin(), tensor::all_dims.end(),
                       [&](Dim dim) { return at[dim] >= box.lo[dim] && at[dim] < box.hi[dim]; });
  });
}

tensor::Window draw_window(Draw& draw) {
  tensor::Window window;
  for (const Dim dim : tensor::spatial_dims) {
    window.size[dim] = draw(1, 3);
    window.stride[dim] = draw(1, 2);
    window.dilation[dim] = draw(1, 2);
    window.pad_lo[dim] = draw(0, window.size[dim] - 1);
    window.pad_hi[dim] = draw(0, window.size[dim] - 1);
  }
  return window;
}

/// An input and one layer behind it; the last node stands for the output.
struct Case {
  model::Graph graph;
  Plan plan;

  [[nodiscard]] const model::Node& node() const { return graph.nodes[1]; }
  [[nodiscard]] const Shape& src() const { return graph.nodes[0].shape; }
  [[nodiscard]] Share share(int rank) const { return share_of(plan, graph, 1, rank); }
};

model::Graph graph_of(const model::Op& op, const Shape& input) {
  model::GraphBuilder builder("net", 3, input);
  builder.add("layer", op);
  builder.add("out", model::Scale{});
  return builder.finish({.terms = {{}}});
}

/// verify(), but ranks may be idle: there is only one layer.
void check_but_idle_ranks(const Case& drawn) {
  const std::string message = message_of([&] { verify(drawn.plan, drawn.graph); });
  if (message == "no error" || message.find("has nothing to do in any layer") != std::string::npos) return;
  base::fail(base::Exit::bad_data, "{}", message);
}

/// A convolution, transposed convolution or dense layer with up to 7 channels and any cut of them.
Case draw_layer(Draw& draw) {
  while (true) {
    const std::int64_t groups = draw(0, 2) == 0 ? draw(2, 4) : 1;
    Shape input{draw(1, 3), groups * draw(1, groups > 1 ? 2 : 7), draw(1, 5), draw(1, 4), draw(1, 4)};
    const std::int64_t filters = groups * draw(1, groups > 1 ? 2 : 7);
    model::Op op = model::Conv{.filters = filters, .window = draw_window(draw), .groups = groups};
    if (draw(0, 2) == 0) {
      const tensor::Window window = draw_window(draw);
      op = model::ConvTranspose{.filters = filters,
                                .window = window,
                                .output_padding = {window.stride.d - 1, 0, window.stride.w - 1},
                                .groups = groups};
    } else if (groups == 1 && draw(0, 3) == 0) {
      input.d = input.h = input.w = 1;
      op = model::Dense{.features = filters};
    }
    try {
      Case drawn{.graph = graph_of(op, input), .plan = {}};
      drawn.plan = serial_plan(drawn.graph);
      NodePlan& layer = drawn.plan.nodes[1];
      layer.grid = {.n = draw.number(1, 2),
                    .c = draw.number(1, 6),
                    .d = draw.number(1, 2),
                    .h = draw.number(1, 2),
                    .w = draw.number(1, 2)};
      layer.first_rank = draw.number(0, 2);
      if (groups == 1) {
        do layer.channel_parts = draw.number(1, layer.grid.c);
        while (layer.grid.c % layer.channel_parts != 0);
      }
      drawn.plan.ranks = layer.first_rank + tensor::parts(layer.grid);
      check_but_idle_ranks(drawn);
      return drawn;
    } catch (const base::Error&) {
      // Nothing that can run; the next one.
    }
  }
}

/// Every (filter, channel) pair of every pixel, and how often it is computed.
using Pairs = std::map<std::array<std::int64_t, 6>, int>;

Pairs computed_pairs(const Case& drawn, std::int64_t groups) {
  const std::int64_t filters_per_group = drawn.node().shape.c / groups;
  const std::int64_t channels_per_group = drawn.src().c / groups;
  Pairs pairs;
  for (int rank = 0; rank < drawn.plan.ranks; ++rank) {
    const Share share = drawn.share(rank);
    for_each_cell(share.computed, [&](const Shape& at) {
      for (const Box& box : share.sources.front()) {
        for (std::int64_t c = box.lo.c; c < box.hi.c; ++c) {
          if (c / channels_per_group == at.c / filters_per_group) ++pairs[{at.n, at.c, at.d, at.h, at.w, c}];
        }
      }
    });
  }
  return pairs;
}

std::int64_t groups_in(const Case& drawn) {
  if (const auto* conv = std::get_if<model::Conv>(&drawn.node().op)) return conv->groups;
  if (const auto* conv = std::get_if<model::ConvTranspose>(&drawn.node().op)) return conv->groups;
  return 1;
}

std::string text(const Case& drawn) {
  return std::string(model::name_of(drawn.node().op)) + " " + tensor::to_text(drawn.src()) + " to " +
         tensor::to_text(drawn.node().shape) + " groups " + std::to_string(groups_in(drawn)) + " grid " +
         tensor::to_text(drawn.plan.nodes[1].grid) + " channel parts " +
         std::to_string(drawn.plan.nodes[1].channel_parts);
}

TEST(Share, EveryProductIsComputedExactlyOnce) {
  Draw draw(1);
  for (int trial = 0; trial < 1500 && !testing::Test::HasFailure(); ++trial) {
    const Case drawn = draw_layer(draw);
    SCOPED_TRACE(text(drawn));
    const Pairs pairs = computed_pairs(drawn, groups_in(drawn));
    EXPECT_EQ(static_cast<std::int64_t>(pairs.size()),
              tensor::volume(drawn.node().shape) * (drawn.src().c / groups_in(drawn)));
    EXPECT_TRUE(std::all_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.second == 1; }));
  }
}

TEST(Share, OwnedBoxesTileAndLieInWhatTheirGroupComputes) {
  Draw draw(2);
  for (int trial = 0; trial < 3000 && !testing::Test::HasFailure(); ++trial) {
    const Case drawn = draw_layer(draw);
    SCOPED_TRACE(text(drawn));
    std::int64_t owned = 0;
    for (int rank = 0; rank < drawn.plan.ranks; ++rank) {
      const Share share = drawn.share(rank);
      EXPECT_TRUE(tensor::contains(share.computed, share.owned));
      owned += tensor::volume(share.owned);
      ASSERT_EQ(share.sources.size(), 1U);
      EXPECT_EQ(tensor::is_empty(share.computed), share.sources.front().empty());
      for (std::size_t i = 1; i < share.sources.front().size(); ++i) {
        EXPECT_LE(share.sources.front()[i - 1].hi.c, share.sources.front()[i].lo.c);
      }
    }
    EXPECT_EQ(owned, tensor::volume(drawn.node().shape));
  }
}

/// Calls visit(src position) for every src pixel that the layer's dst pixel `at` depends on.
template <class Visit>
void for_each_needed(const Case& drawn, const Shape& at, Visit visit) {
  const auto* transposed = std::get_if<model::ConvTranspose>(&drawn.node().op);
  const auto* conv = std::get_if<model::Conv>(&drawn.node().op);
  if (conv == nullptr && transposed == nullptr) return visit(at);
  const tensor::Window& window = conv != nullptr ? conv->window : transposed->window;
  Shape tried{1, 1, window.size.d, window.size.h, window.size.w};
  if (transposed != nullptr) tried = {1, 1, drawn.src().d, drawn.src().h, drawn.src().w};
  for_each_cell(tensor::whole(tried), [&](const Shape& k) {
    Shape cell = at;
    bool needed = true;
    for (const Dim dim : tensor::spatial_dims) {
      if (transposed == nullptr) {
        cell[dim] = at[dim] * window.stride[dim] + k[dim] * window.dilation[dim] - window.pad_lo[dim];
        needed = needed && cell[dim] >= 0 && cell[dim] < drawn.src()[dim];
        continue;
      }
      cell[dim] = k[dim];
      const std::int64_t offset = at[dim] + window.pad_lo[dim] - k[dim] * window.stride[dim];
      needed = needed && offset >= 0 && offset % window.dilation[dim] == 0 &&
               offset / window.dilation[dim] < window.size[dim];
    }
    if (needed) visit(cell);
  });
}

TEST(Share, SourcesHoldWhatIsNeeded) {
  Draw draw(3);
  for (int trial = 0; trial < 600 && !testing::Test::HasFailure(); ++trial) {
    const Case drawn = draw_layer(draw);
    SCOPED_TRACE(text(drawn));
    for (int rank = 0; rank < drawn.plan.ranks; ++rank) {
      const Share share = drawn.share(rank);
      bool all = true;
      Box pixels = share.computed;
      pixels.hi.c = std::min(pixels.hi.c, pixels.lo.c + 1);
      for_each_cell(pixels, [&](const Shape& at) {
        for_each_needed(drawn, at, [&](Shape cell) {
          for (const Box& box : share.sources.front()) {
            cell.c = box.lo.c;
            all = all && holds({box}, cell);
          }
        });
      });
      EXPECT_TRUE(all);
    }
  }
}

void add_items(const std::vector<Range>& ranges, std::vector<std::int64_t>& items) {
  for (const Range& range : ranges) {
    for (std::int64_t i = range.lo; i < range.hi; ++i) items.push_back(i);
  }
}

/// How often each item of the first two extents is in the shard.
void count_items(const Shard& shard, std::map<std::pair<std::int64_t, std::int64_t>, int>& counts) {
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> second;
  add_items(shard.first, first);
  add_items(shard.second, second);
  if (shard.second.empty()) second = {0};
  for (const std::int64_t a : first) {
    for (const std::int64_t b : second) ++counts[{a, b}];
  }
}

TEST(Shard, HoldersShareOnePartAndThePartsTileTheParameter) {
  Draw draw(4);
  for (int trial = 0; trial < 3000 && !testing::Test::HasFailure(); ++trial) {
    const Case drawn = draw_layer(draw);
    SCOPED_TRACE(text(drawn));
    for (const model::Parameter& parameter : model::node_parameters(drawn.graph, 1)) {
      SCOPED_TRACE(parameter.name);
      std::map<std::pair<std::int64_t, std::int64_t>, int> counts;
      std::int64_t items = 0;
      std::set<int> seen;
      for (int rank = 0; rank < drawn.plan.ranks; ++rank) {
        const Shard shard = shard_of(drawn.plan, drawn.graph, parameter, rank);
        const std::vector<int> holders = shard_holders(drawn.plan, drawn.graph, 1, rank).to_list();
        if (rank < drawn.plan.nodes[1].first_rank) {
          EXPECT_TRUE(holders.empty());
          EXPECT_EQ(count(parameter, shard), 0);
          continue;
        }
        EXPECT_TRUE(std::is_sorted(holders.begin(), holders.end()));
        EXPECT_EQ(std::count(holders.begin(), holders.end(), rank), 1);
        for (const int other : holders) EXPECT_EQ(shard_of(drawn.plan, drawn.graph, parameter, other), shard);
        if (seen.count(rank) == 0) {
          count_items(shard, counts);
          items += count(parameter, shard);
        }
        seen.insert(holders.begin(), holders.end());
      }
      const std::int64_t second = parameter.extents.size() > 1 ? parameter.extents[1] : 1;
      EXPECT_EQ(static_cast<std::int64_t>(counts.size()), parameter.extents[0] * second);
      EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](const auto& item) { return item.second == 1; }));
      EXPECT_EQ(items, model::count(parameter));
    }
  }
}

TEST(Shard, WeightsAreThoseOfTheProductsComputed) {
  Draw draw(5);
  for (int trial = 0; trial < 3000 && !testing::Test::HasFailure(); ++trial) {
    const Case drawn = draw_layer(draw);
    if (groups_in(drawn) > 1) continue;
    SCOPED_TRACE(text(drawn));
    const model::Parameter weights = model::node_parameters(drawn.graph, 1).front();
    for (int rank = drawn.plan.nodes[1].first_rank; rank < drawn.plan.ranks; ++rank) {
      const Share share = drawn.share(rank);
      if (tensor::is_empty(share.computed)) continue;
      const Shard shard = shard_of(drawn.plan, drawn.graph, weights, rank);
      const bool transposed = std::holds_alternative<model::ConvTranspose>(drawn.node().op);
      std::vector<std::int64_t> read;
      std::vector<std::int64_t> held;
      for (const Box& box : share.sources.front()) add_items({box[Dim::c]}, read);
      add_items(transposed ? shard.first : shard.second, held);
      EXPECT_EQ(held, read);
      EXPECT_EQ(transposed ? shard.second : shard.first, std::vector<Range>{share.computed[Dim::c]});
    }
  }
}

}  // namespace
}  // namespace orthant::plan
