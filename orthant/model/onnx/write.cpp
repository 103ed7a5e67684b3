#include "orthant/model/onnx/write.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/model/onnx/emit.hpp"
#include "orthant/model/stored.hpp"

#include <limits>
#include <string>
#include <vector>

namespace orthant::model::onnx {
namespace {

using base::Exit;
using base::fail;

// Numbers of fields in ONNX's ModelProto and GraphProto.
constexpr int graph_node = 1, graph_name = 2, graph_initializer = 5, graph_input = 11, graph_output = 12;
constexpr int model_version = 1, model_producer = 2, model_graph = 7, model_opset = 8;
constexpr std::int64_t ir_version = 8, opset = 17;

/// A parameter as a field of the graph, up to its numbers.
std::string parameter_field(const Graph& graph, const Parameter& parameter) {
  const auto bytes = static_cast<std::uint64_t>(base::checked_mul(count(parameter), sizeof(float)));
  const std::string head = wire::tensor_head(parameter.name, file_extents(graph, parameter), bytes);
  std::string field;
  wire::put_length(field, graph_initializer, head.size() + bytes);
  return field + head;
}

std::string graph_fields(const Graph& graph, const Emitter& emitter) {
  std::string text;
  for (const std::string& node : emitter.nodes()) wire::put_bytes(text, graph_node, node);
  wire::put_bytes(text, graph_name, graph.name);
  for (const std::string& constant : emitter.constants()) wire::put_bytes(text, graph_initializer, constant);
  std::vector<std::int64_t> source{graph.nodes.front().shape.n, graph.nodes.front().shape.c};
  for (const tensor::Dim dim : tensor::named_dims(graph.spatial_count))
    source.push_back(graph.nodes.front().shape[dim]);
  wire::put_bytes(text, graph_input, wire::value("input", source));
  wire::put_bytes(text, graph_output, wire::value("output", emitter.output_extents()));
  return text;
}

}  // namespace

void write_model(const Graph& graph, const Sink& sink) {
  const Emitter emitter(graph);
  const std::string fields = graph_fields(graph, emitter);
  const std::vector<Parameter> all = parameters(graph);
  auto bytes = static_cast<std::int64_t>(fields.size());
  for (const Parameter& parameter : all) {
    bytes = base::checked_add(bytes, static_cast<std::int64_t>(parameter_field(graph, parameter).size()));
    bytes = base::checked_add(bytes, base::checked_mul(count(parameter), sizeof(float)));
  }
  std::string head;
  wire::put_integer(head, model_version, ir_version);
  wire::put_bytes(head, model_producer, "orthant");
  std::string version;
  wire::put_bytes(version, 1, "");
  wire::put_integer(version, 2, opset);
  wire::put_bytes(head, model_opset, version);
  if (bytes + static_cast<std::int64_t>(head.size()) + 64 > std::numeric_limits<std::int32_t>::max())
    fail(Exit::does_not_fit, "{}: {} bytes; an ONNX file has less than 2 GiB: export to safetensors", graph.name,
         bytes);
  wire::put_length(head, model_graph, static_cast<std::uint64_t>(bytes));
  sink.write(head);
  sink.write(fields);
  std::vector<float> values;
  for (const Parameter& parameter : all) {
    sink.write(parameter_field(graph, parameter));
    values.resize(static_cast<std::size_t>(count(parameter)));
    sink.values(parameter, values);
    sink.write({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
}

}  // namespace orthant::model::onnx
