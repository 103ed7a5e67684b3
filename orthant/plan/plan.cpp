#include "orthant/plan/plan.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"

namespace orthant::plan {
namespace {

using base::Exit;
using base::fail;
using json = base::Json;

constexpr int format_version = 1;
constexpr int most_ranks = 1 << 20;

/// A whole number of at least 1 under `key`.
int positive(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) fail(Exit::bad_data, "{}: '{}' is missing", where, key);
  if (!found->is_number_integer() || *found < 1 || *found > most_ranks) {
    fail(Exit::bad_data, "{}: '{}' must be a whole number from 1 to {}", where, key, most_ranks);
  }
  return found->get<int>();
}

tensor::Grid grid_from(const json& object, const std::string& where) {
  tensor::Grid grid;
  if (!object.is_object()) fail(Exit::bad_data, "{}: the grid must be an object such as {{\"d\": 2}}", where);
  for (const auto& [key, value] : object.items()) {
    bool known = false;
    for (const tensor::Dim dim : tensor::all_dims) {
      if (key != tensor::name_of(dim)) continue;
      grid[dim] = positive(object, tensor::name_of(dim), where);
      known = true;
    }
    if (!known) fail(Exit::bad_data, "{}: unknown dim '{}' in the grid; known are n, c, d, h, w", where, key);
  }
  return grid;
}

}  // namespace

Plan serial_plan(const model::Graph& graph) {
  Plan plan;
  for (const model::Node& node : graph.nodes) plan.nodes.push_back({.node = node.name, .grid = {}});
  return plan;
}

void verify(const Plan& plan, const model::Graph& graph) {
  if (plan.nodes.size() != graph.nodes.size()) {
    fail(Exit::bad_data, "the plan has {} nodes but {} has {}; make the plan for this network", plan.nodes.size(),
         graph.name, graph.nodes.size());
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const NodePlan& node = plan.nodes[i];
    if (node.node != graph.nodes[i].name) {
      fail(Exit::bad_data, "the plan's node {} is '{}' but {} has '{}' there; make the plan for this network", i,
           node.node, graph.name, graph.nodes[i].name);
    }
    if (tensor::parts(node.grid) != plan.ranks) {
      fail(Exit::bad_data, "{}: grid {} has {} parts but the plan is for {} ranks; let the grid's product be {}",
           node.node, tensor::to_text(node.grid), tensor::parts(node.grid), plan.ranks, plan.ranks);
    }
  }
}

std::string to_json(const Plan& plan) {
  json nodes = json::array();
  for (const NodePlan& node : plan.nodes) {
    json grid = json::object();
    for (const tensor::Dim dim : tensor::all_dims) {
      if (node.grid[dim] > 1) grid[tensor::name_of(dim)] = node.grid[dim];
    }
    nodes.push_back({{"node", node.node}, {"grid", grid}});
  }
  return json{{"format", "orthant-plan"}, {"version", format_version}, {"ranks", plan.ranks}, {"nodes", nodes}}.dump(2);
}

Plan from_json(const std::string& text, const std::string& origin) {
  const json document = base::parse_json(text, origin);
  if (!document.is_object() || document.value("format", json()) != "orthant-plan") {
    fail(Exit::bad_data, "{}: not a plan; a plan is JSON with \"format\": \"orthant-plan\"", origin);
  }
  if (const int version = positive(document, "version", origin); version != format_version) {
    fail(Exit::bad_data, "{}: plan version {} is not known here; this program reads version {}", origin, version,
         format_version);
  }
  Plan plan{.ranks = positive(document, "ranks", origin), .nodes = {}};
  const auto nodes = document.find("nodes");
  if (nodes == document.end() || !nodes->is_array()) fail(Exit::bad_data, "{}: 'nodes' must be a list", origin);
  for (const json& entry : *nodes) {
    if (!entry.is_object() || !entry.contains("node") || !entry["node"].is_string()) {
      fail(Exit::bad_data, "{}: each entry of 'nodes' needs a 'node' with its name", origin);
    }
    const auto name = entry["node"].get<std::string>();
    const std::string where = fmt::format("{}: {}", origin, name);
    plan.nodes.push_back({.node = name, .grid = grid_from(entry.value("grid", json::object()), where)});
  }
  return plan;
}

}  // namespace orthant::plan
