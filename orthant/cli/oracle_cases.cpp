#include "orthant/cli/oracle_cases.hpp"

#include "orthant/model/network.hpp"
#include "orthant/plan/groups.hpp"
#include "orthant/plan/strategy.hpp"

namespace orthant::cli {
namespace {

plan::Plan mixed_plan(const model::Graph& graph, int ranks) {
  plan::Plan plan = plan::make_plan(graph, "spatial", ranks);
  const plan::Plan tail = plan::make_plan(graph, "filter", ranks);
  const std::vector<bool> borders = plan::stage_borders(graph);
  std::size_t border = graph.nodes.size() / 2;
  while (border < borders.size() && !borders[border]) ++border;
  for (std::size_t node = border; node < plan.nodes.size(); ++node) plan.nodes[node] = tail.nodes[node];
  plan::verify(plan, graph);
  return plan;
}

}  // namespace

std::vector<OracleCase> oracle_cases(int ranks) {
  const std::vector<OracleCase> networks{{.model = "cosmoflow", .input = "4x128x128x128", .mini_batch = 2},
                                         {.model = "resnet50", .input = "3x224x224", .mini_batch = 8},
                                         {.model = "vgg16", .input = "3x224x224", .mini_batch = 4},
                                         {.model = "unet3d", .input = "1x64x64x64", .mini_batch = 2}};
  std::vector<OracleCase> cases;
  for (OracleCase one : networks) {
    one.strategy = "serial";
    cases.push_back(one);
    one.ranks = ranks;
    for (const char* strategy : {"data", "spatial", "filter", "channel", "pipeline", "mixed", "auto"}) {
      one.strategy = strategy;
      cases.push_back(one);
    }
  }
  return cases;
}

model::Graph load(const OracleCase& one) {
  return model::load_network(one.model, {.input = one.input, .mini_batch = one.mini_batch, .settings = {}});
}

plan::Plan plan_of(const OracleCase& one, const model::Graph& graph) {
  if (one.strategy == "serial") return plan::serial_plan(graph);
  if (one.strategy == "mixed") return mixed_plan(graph, one.ranks);
  return plan::make_plan(graph, one.strategy, one.ranks);
}

}  // namespace orthant::cli
