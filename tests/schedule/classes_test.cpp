#include "orthant/schedule/classes.hpp"

#include "orthant/model/network.hpp"
#include "orthant/plan/exchange_forms.hpp"
#include "orthant/plan/strategy.hpp"
#include "tests/schedule/small_schedules.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace orthant::schedule {
namespace {

int member_count(const Classes& classes) {
  return std::accumulate(classes.all().begin(), classes.all().end(), 0,
                         [](int sum, const RankClass& one) { return sum + one.members; });
}

/// Every `step`th rank does what the representative of its class does.
void expect_alike(const model::Graph& graph, const plan::Plan& plan, const LowerOptions& options, int step = 1) {
  const Analysis analysis(graph, plan, false);
  const Classes classes(analysis, options);
  EXPECT_EQ(member_count(classes), plan.ranks);
  std::vector<std::string> texts;
  for (const RankClass& one : classes.all()) {
    EXPECT_EQ(classes.of(one.representative), static_cast<int>(texts.size()));
    texts.push_back(to_class_text(lower(analysis, one.representative, options)));
  }
  for (int rank = 0; rank < plan.ranks; rank += step) {
    const std::string mine = to_class_text(lower(analysis, rank, options));
    EXPECT_EQ(mine == texts[static_cast<std::size_t>(classes.of(rank))], true)
        << "rank " << rank << " differs from rank "
        << classes.all()[static_cast<std::size_t>(classes.of(rank))].representative << " under\n"
        << plan::to_text(plan);
    if (testing::Test::HasFailure()) return;
  }
}

struct Case {
  const char* network;
  const char* input;
  std::int64_t samples;
  const char* grid;
};

model::Graph graph_of(const Case& one) {
  return model::load_network(one.network, {.input = one.input, .mini_batch = one.samples});
}

class AllRanks : public testing::TestWithParam<Case> {};

TEST_P(AllRanks, DoWhatTheirRepresentativesDo) {
  const model::Graph graph = graph_of(GetParam());
  plan::Plan plan = plan::make_plan(graph, plan::parse_grid(GetParam().grid));
  for (const plan::Form form : plan::all_forms) {
    for (const int together : {1, 3, 4}) {
      plan.exchanges = plan::forced(form, true);
      expect_alike(graph, plan, {.machines = plan::Machines::alike(plan.ranks, together)});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans, AllRanks,
    testing::Values(Case{"resnet18", "3x32x32", 13, "n13"}, Case{"resnet18", "3x64x64", 16, "n8h2"},
                    Case{"cosmoflow", "4x64x64x64", 2, "n2d4h2w2"}, Case{"cosmoflow", "4x64x64x64", 4, "n4d4h2w4"},
                    Case{"cosmoflow", "4x48x48x48", 3, "n3d3h2"}, Case{"unet3d", "1x32x32x32", 2, "n2d2h2w2"},
                    Case{"cosmoflow", "4x32x32x32", 4, "n4f4"}, Case{"cosmoflow", "4x32x32x32", 12, "p3"}),
    [](const auto& one) { return std::string(one.param.network) + "_" + std::string(one.param.grid); });

TEST(Classes, OfThousandsOfRanksAreFew) {
  const Case cosmoflow{"cosmoflow", "4x512x512x512", 64, "n64d8h2w2"};
  const model::Graph volumes = graph_of(cosmoflow);
  const plan::Plan hybrid = plan::make_plan(volumes, plan::parse_grid(cosmoflow.grid));
  expect_alike(volumes, hybrid, {}, 97);
  EXPECT_LE(Classes(Analysis(volumes, hybrid, false), {}).all().size(), 300U);

  const model::Graph images = graph_of({"resnet50", "3x224x224", 2048, ""});
  const plan::Plan data = plan::make_plan(images, plan::parse_grid("n2048"));
  expect_alike(images, data, {}, 211);
  EXPECT_EQ(Classes(Analysis(images, data, false), {}).all().size(), 1U);
}

}  // namespace
}  // namespace orthant::schedule
