// Every form of exchange on real ranks, so that MPI's own collectives and progress are tried as well.
#include "tests/engine/forms.hpp"

#include "tests/engine/ranks.hpp"
#include "tests/support/mpi_main.hpp"

#include <gtest/gtest.h>

namespace orthant::test {
namespace {

TEST(MpiForms, EqualOneRankBitForBitOnWholeNumbers) {
  const int count = ranks().size();
  const model::Graph graph = exact_network(16);
  RanksOptions options{.learning_rate = 0.25,
                       .lower = {.optimizer = {.kind = model::OptimizerKind::sgd, .momentum = 0.5}}};
  options.lower.least_bytes_in_place = 0;
  options.lower.keep_output = true;
  const Outcome one = run_ranks(graph, plan::serial_plan(graph), options);
  for (const plan::Form form : all_forms) {
    for (const int per_machine : {1, 2, count}) {
      plan::Plan plan = plan::make_plan(graph, plan::parse_grid("n" + std::to_string(count)));
      plan.exchanges = plan::forced(form, true);
      options.ranks_per_machine = per_machine;
      EXPECT_EQ(part_difference(run_rank(graph, plan, options, ranks()), one), "")
          << plan::name_of(form) << ", " << per_machine << " ranks per machine, rank " << ranks().rank();
    }
  }
}

}  // namespace
}  // namespace orthant::test
