#include "orthant/train/numbers.hpp"

#include "orthant/plan/request.hpp"
#include "tests/data/temporary.hpp"
#include "tests/support/thread_comm.hpp"
#include "tests/train/small_network.hpp"

#include <cstring>
#include <limits>

namespace orthant::train {
namespace {

using base::Exit;
using test::expect_error;

/// Sessions that share no memory, so that each rank has weights of its own.
void on_ranks(int ranks, const std::function<void(engine::Session&)>& body) {
  test::run_threads(ranks, [&](comm::Comm& comm) {
    const model::Graph graph = test::small_graph(12);
    plan::Plan plan = plan::make_plan(graph, {.grid = fmt::format("n{}", ranks)}, ranks);
    plan.exchanges.most_ranks_per_machine = 1;
    engine::Session session(graph, plan, comm, {.lowering = {.optimizer = {.momentum = 0.9}}});
    session.initialise_weights(3);
    body(session);
  });
}

/// Turns one bit of a weight over.
void flip(engine::Session& session, std::size_t parameter, std::size_t item, unsigned bit) {
  const std::span<float> values = session.engine().floats(session.schedule().parameters.at(parameter).value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &values[item % values.size()], sizeof bits);
  bits ^= 1U << bit;
  std::memcpy(&values[item % values.size()], &bits, sizeof bits);
}

TEST(Numbers, EqualReplicasAreEqual) {
  on_ranks(4, [](engine::Session& session) { check_replicas(session, 1); });
}

TEST(Numbers, AFlippedBitIsFound) {
  for (std::size_t parameter = 0; parameter < 7; ++parameter) {
    const std::string name = model::parameters(test::small_graph(2)).at(parameter).name;
    expect_error(Exit::disagreement, "after step 50 '" + name + "' is not the same on all ranks that hold it: rank 2 ",
                 [&] {
                   on_ranks(4, [&](engine::Session& session) {
                     if (session.comm().rank() == 2) flip(session, parameter, 5, static_cast<unsigned>(parameter));
                     check_replicas(session, 50);
                   });
                 });
  }
  expect_error(Exit::disagreement, "ranks 0, 1 differ from each other", [] {
    on_ranks(2, [](engine::Session& session) {
      if (session.comm().rank() == 1) flip(session, 0, 0, 31);
      check_replicas(session, 50);
    });
  });
}

TEST(Numbers, WeightsThatAreNotFiniteAreNamed) {
  on_ranks(3, [](engine::Session& session) {
    EXPECT_EQ(non_finite_text(session), "");
    check_finite_weights(session);
  });
  on_ranks(3, [](engine::Session& session) {
    if (session.comm().rank() == 1)
      session.engine().floats(session.schedule().parameters.at(0).value)[3] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(non_finite_text(session), "rank 1 has inf in 'conv1.weight' of layer 'conv1'");
  });
  expect_error(Exit::non_finite, "'conv1.weight' has the number inf", [] {
    on_ranks(3, [](engine::Session& session) {
      if (session.comm().rank() == 1)
        session.engine().floats(session.schedule().parameters.at(0).value)[3] = std::numeric_limits<float>::infinity();
      check_finite_weights(session);
    });
  });
}

TEST(Numbers, AStepIsTakenBack) {
  model::Graph graph = test::small_graph(2);
  engine::Session session = test::small_session(graph, {.optimizer = {.momentum = 0.9}});
  session.initialise_weights(3);
  const auto values = [&] {
    std::vector<float> all;
    for (const auto& entry : session.schedule().parameters) {
      const std::span<float> some = session.engine().floats(entry.value);
      all.insert(all.end(), some.begin(), some.end());
    }
    for (const auto& bucket : session.schedule().buckets) {
      const std::span<float> some = session.engine().floats(bucket.state.at(0));
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  };
  StepCopy copy(session.engine());
  copy.take(session.engine());
  const std::vector<float> before = values();
  std::ranges::fill(session.engine().floats(session.schedule().inputs.front().buffer), 1.0F);
  session.engine().run({.step = 1, .seed = 1, .learning_rate = 0.1});
  EXPECT_FALSE(session.engine().wrote_non_finite());
  EXPECT_NE(values(), before);
  copy.put_back(session.engine(), session.comm());
  EXPECT_EQ(values(), before);
}

TEST(Numbers, UpdatesSeeWhatTheyWrite) {
  for (const model::OptimizerKind kind : {model::OptimizerKind::sgd, model::OptimizerKind::adam}) {
    for (std::size_t parameter = 0; parameter < 7; ++parameter) {
      model::Graph graph = test::small_graph(2);
      engine::Session session = test::small_session(graph, {.optimizer = {.kind = kind}});
      session.initialise_weights(3);
      const auto& entry = session.schedule().parameters.at(parameter);
      if (!entry.parameter.trainable) continue;
      const std::span<float> items = session.engine().floats(entry.value);
      items[items.size() - 1] = std::numeric_limits<float>::quiet_NaN();
      session.engine().run({.step = 1, .seed = 1, .learning_rate = 0.1});
      EXPECT_TRUE(session.engine().wrote_non_finite()) << entry.parameter.name;
    }
  }
}

}  // namespace
}  // namespace orthant::train
