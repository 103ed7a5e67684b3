#include "orthant/engine/session.hpp"

#include "orthant/comm/agree.hpp"
#include "orthant/comm/alone.hpp"
#include "orthant/plan/strategy.hpp"
#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orthant::test {
namespace {

model::Graph two_layers() {
  const tensor::Window three{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  model::GraphBuilder builder("two", 3, {.n = 2, .c = 2, .d = 4, .h = 4, .w = 4});
  builder.add("conv", model::Conv{.filters = 4, .window = three});
  builder.add("flatten", model::Flatten{});
  builder.add("dense", model::Dense{.features = 3});
  return builder.finish({.terms = {{}}});
}

std::vector<float> parameter(const engine::Session& session, std::size_t index) {
  const int buffer = session.schedule().parameters[index].value;
  std::vector<float> values(session.engine().item_count(buffer));
  session.engine().read(buffer, values);
  return values;
}

TEST(Session, RunsThePlanThatItReturns) {
  const model::Graph graph = two_layers();
  comm::Alone alone;
  engine::Session first(graph, plan::serial_plan(graph), alone, {});
  EXPECT_NE(first.plan().nodes[1].kernels.forward.algorithm, model::Algorithm::automatic);

  const engine::Session second(graph, first.plan(), alone, {});
  EXPECT_EQ(second.plan(), first.plan());
  for (int step = 0; step < static_cast<int>(first.schedule().steps.size()); ++step)
    EXPECT_EQ(first.engine().implementation(step), second.engine().implementation(step));
}

TEST(Session, WeightsStartFromTheSeedAlone) {
  const model::Graph graph = two_layers();
  comm::Alone alone;
  engine::Session a(graph, plan::serial_plan(graph), alone, {});
  engine::Session b(graph, plan::serial_plan(graph), alone, {});
  a.initialise_weights(7);
  b.initialise_weights(7);
  EXPECT_EQ(parameter(a, 0), parameter(b, 0));
  b.initialise_weights(8);
  EXPECT_NE(parameter(a, 0), parameter(b, 0));
}

TEST(Session, BuffersAreReadAndWrittenAsCopies) {
  const model::Graph graph = two_layers();
  comm::Alone alone;
  engine::Session session(graph, plan::serial_plan(graph), alone, {});
  const int buffer = session.schedule().parameters[0].value;
  std::vector<float> values(session.engine().item_count(buffer));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);

  session.engine().write(buffer, values);
  EXPECT_EQ(parameter(session, 0), values);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), session.engine().floats(buffer).begin()));
  values[0] = -1;
  EXPECT_EQ(parameter(session, 0)[0], 0);
}

TEST(Session, RefusesMoreExchangesThanThereAreTagsBeforeItAllocates) {
  const model::Graph graph = two_layers();
  const plan::Plan plan = plan::make_plan(graph, "data", 2);
  const auto body = [&](comm::Comm& comm) {
    bool allocates = false;
    engine::SessionOptions options;
    options.before_allocation = [&](const schedule::Placement&) { allocates = true; };
    try {
      const engine::Session session(graph, plan, comm, options);
      ADD_FAILURE() << "nothing is refused";
    } catch (const comm::CollectiveError& error) {
      EXPECT_EQ(error.code(), base::Exit::does_not_fit);
      EXPECT_NE(std::string(error.what()).find("but this MPI has them up to 10; use fewer micro-batches"),
                std::string::npos)
          << error.what();
    }
    EXPECT_FALSE(allocates);
  };
  run_threads(2, body, {.largest_tag = 10});
}

TEST(Session, AllRanksRefuseTheSame) {
  const model::Graph graph = two_layers();
  plan::Plan wrong = plan::make_plan(graph, plan::parse_grid("d2"));
  wrong.nodes.back().node = "another";
  const plan::Plan right = plan::make_plan(graph, plan::parse_grid("d2"));
  run_threads(2, [&](comm::Comm& comm) {
    EXPECT_THROW(engine::Session(graph, wrong, comm, {}), comm::CollectiveError);
    EXPECT_THROW(engine::Session(graph, right, comm, {.other_bytes = std::int64_t{1} << 50}), comm::CollectiveError);
    // What one rank refuses before its arena is allocated, all refuse.
    engine::SessionOptions options;
    if (comm.rank() == 1)
      options.before_allocation = [](const schedule::Placement&) { base::fail(base::Exit::does_not_fit, "no"); };
    EXPECT_THROW(engine::Session(graph, right, comm, options), comm::CollectiveError);
    EXPECT_NO_THROW(engine::Session(graph, right, comm, {}));
  });
}

}  // namespace
}  // namespace orthant::test
