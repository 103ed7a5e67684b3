#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/model/work.hpp"
#include "orthant/model/yaml.hpp"

#include <cstdio>
#include <memory>

namespace orthant::cli {
namespace {

using base::Json;
using model::Graph;
using model::GraphWork;
using model::Node;
using model::NodeWork;

struct InspectOptions {
  NetworkArguments network;
  bool json = false;
  bool yaml = false;
};

/// "3,550.31": convolutions of one step are quoted in GFLOP, whatever their size.
std::string gigaflops(std::int64_t flops, int digits) {
  const std::string text = fmt::format("{:.{}f}", static_cast<double>(flops) * 1e-9, digits);
  const std::size_t point = text.find('.');
  return with_commas(std::stoll(text.substr(0, point))) + text.substr(point);
}

/// c, d, h, w of one sample; without d in a 2-D network, without d and h in a 1-D one.
std::vector<std::int64_t> sample_extents(const Graph& graph, const Node& node) {
  std::vector<std::int64_t> extents{node.shape.c};
  for (const tensor::Dim dim : tensor::named_dims(graph.spatial_count)) extents.push_back(node.shape[dim]);
  return extents;
}

Json to_json(const Graph& graph, const Node& node, const NodeWork& work) {
  Json from = Json::array();
  for (const int src : node.srcs) from.push_back(graph.nodes[src].name);
  return {{"name", node.name},
          {"op", model::name_of(node.op)},
          {"from", from},
          {"shape", sample_extents(graph, node)},
          {"parameters", work.parameters},
          {"forward_flops", work.flops},
          {"activation_bytes", work.activation_bytes}};
}

void print_json(const Graph& graph, const GraphWork& work) {
  Json loss = Json::array();
  for (const model::LossTerm& term : graph.loss.terms)
    loss.push_back({{"kind", model::name_of(term.kind)}, {"weight", term.weight}});
  Json layers = Json::array();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) layers.push_back(to_json(graph, graph.nodes[i], work.nodes[i]));
  const Json all{{"name", graph.name},
                 {"input", sample_extents(graph, graph.nodes.front())},
                 {"mini_batch", graph.nodes.front().shape.n},
                 {"parameters", work.parameters},
                 {"conv_flops", work.conv_flops},
                 {"forward_flops", work.forward_flops},
                 {"activation_bytes", work.activation_bytes},
                 {"loss", loss},
                 {"remarks", graph.remarks},
                 {"layers", layers}};
  fmt::print("{}\n", all.dump(2));
}

void print_table(const Graph& graph, const GraphWork& work) {
  Table table({{"layer", Table::Align::left},
               {"op", Table::Align::left},
               {"output"},
               {"parameters"},
               {"forward GFLOP"},
               {"activation"}});
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const NodeWork& cost = work.nodes[i];
    table.add({node.name, model::name_of(node.op), fmt::format("{}", fmt::join(sample_extents(graph, node), "x")),
               cost.parameters > 0 ? with_commas(cost.parameters) : "", cost.flops > 0 ? gigaflops(cost.flops, 4) : "",
               bytes_text(cost.activation_bytes)});
  }
  table.add_line();
  table.add({"all", "", "", with_commas(work.parameters), gigaflops(work.forward_flops, 4),
             bytes_text(work.activation_bytes)});

  const std::int64_t samples = graph.nodes.front().shape.n;
  fmt::print("{}\n", table.text());
  fmt::print("network       {}, mini-batch of {} sample{}\n", model::title_of(graph), samples, samples == 1 ? "" : "s");
  for (const std::string& remark : graph.remarks) fmt::print("              {}\n", remark);
  fmt::print("parameters    {}\n", with_commas(work.parameters));
  fmt::print("convolutions  {} GFLOP (forward x 3)\n", gigaflops(work.conv_flops, 2));
  fmt::print("activations   {} (every layer's output once, float32)\n", bytes_text(work.activation_bytes));
}

void inspect(const InspectOptions& options) {
  const Graph graph = load(options.network);
  if (options.yaml) {
    fmt::print("{}", model::to_yaml(graph));
    return;
  }
  const GraphWork work = model::work_of(graph);
  if (options.json) {
    print_json(graph, work);
  } else {
    print_table(graph, work);
  }
}

}  // namespace

void add_inspect(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("inspect", "Layers, shapes, parameters, flops and activation bytes of a network");
  const auto options = std::make_shared<InspectOptions>();
  add_model(*command, options->network);
  add_shape(*command, options->network);
  CLI::Option* json = command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--yaml", options->yaml, "Print the network as a network file")->excludes(json);
  command->callback([options] { inspect(*options); });
}

}  // namespace orthant::cli
