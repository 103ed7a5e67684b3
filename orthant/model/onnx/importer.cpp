#include "orthant/model/onnx/importer.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/model/onnx/fold.hpp"
#include "orthant/model/onnx/node_view.hpp"
#include "orthant/model/printable.hpp"

#include <algorithm>

namespace orthant::model::onnx {

using base::Exit;
using base::fail;
using tensor::Shape;

namespace {

constexpr int deepest = 16;
constexpr std::int64_t most_steps = 200'000;
constexpr std::int64_t most_folded_in_all = std::int64_t{1} << 26;

/// What to do about an op that is not supported.
std::string remedy_of(const OpNode& node) {
  static const std::map<std::string, const char*> remedies{
      {"LogSoftmax", "take what comes before it (--set output=NAME): cross_entropy has the softmax and the logarithm"},
      {"Log", "take what comes before it (--set output=NAME) and a loss that has the logarithm: cross_entropy"},
      {"Exp", "use a softmax or a sigmoid"},
      {"Softplus", "as in Mish; use SiLU"},
      {"Mish", "use SiLU"},
      {"Einsum", "use a convolution or a dense layer"},
      {"Where", "masks that the network computes are not supported"},
      {"LSTM", "recurrent layers are not supported"},
      {"GRU", "recurrent layers are not supported"},
      {"GridSample", "use resize"},
      {"Loop", "write the loop out: torch.onnx.export traces it"},
      {"ArgMax", "take what comes before it (--set output=NAME)"},
      {"MaxUnpool", "use resize or a transposed convolution"}};
  if (!node.domain.empty()) return "ops of other domains are not supported";
  const auto found = remedies.find(node.op);
  return found == remedies.end() ? "this op is not supported"
                                 : std::string("this op is not supported; ") + found->second;
}

std::int64_t numbers_in(const Value& value) {
  const auto* constant = std::get_if<Constant>(&value);
  return constant == nullptr || constant->numbers == nullptr ? 0 : static_cast<std::int64_t>(constant->numbers->size());
}

}  // namespace

const Value* Scope::find(const std::string& name) const {
  const auto found = values.find(name);
  if (found != values.end()) return &found->second;
  return outer == nullptr ? nullptr : outer->find(name);
}

Importer::Importer(const ModelFile& file, const Shape& sample, int spatial_count)
    : file_(file), spatial_count_(spatial_count) {
  items_.push_back({.op = Op(Input{}), .srcs = {}, .shape = sample, .node = "input", .onnx_op = "input"});
  for (const Tensor& tensor : file.graph.initializers) top_.values[tensor.name] = constant_of(tensor, false);
}

void Importer::run() {
  for (const Declared& input : file_.graph.inputs) {
    // Older files list their weights among the inputs.
    if (top_.values.contains(input.name)) continue;
    const int rank = input.extents ? static_cast<int>(input.extents->size()) : 2 + spatial_count_;
    top_.values[input.name] = plain_view(0, items_.front().shape, rank);
  }
  run_nodes(file_.graph.nodes, top_, 0);
}

void Importer::run_nodes(const std::vector<OpNode>& nodes, Scope& scope, int depth) {
  if (depth > deepest)
    fail(Exit::bad_data, "'{}': functions or graphs in each other, more than {} deep", file_.path, deepest);
  for (const OpNode& node : nodes) {
    if (++steps_ > most_steps) fail(Exit::bad_data, "'{}': more than {} nodes", file_.path, most_steps);
    const OpNode* const before = node_;
    node_ = &node;
    run_node(node, scope, depth);
    node_ = before;
  }
}

void Importer::run_node(const OpNode& node, Scope& scope, int depth) {
  if (node.op == "If" && node.domain.empty()) return run_if(node, scope, depth);
  const auto function = file_.functions.find({node.domain, node.op});
  if (function != file_.functions.end()) return run_function(node, function->second, scope, depth);
  Arguments arguments;
  for (const std::string& name : node.inputs) {
    const Value* value = name.empty() ? nullptr : scope.find(name);
    if (value == nullptr && !name.empty()) {
      fail(Exit::bad_data, "'{}': node '{}' ({}) reads '{}', which nothing before it makes; export the file again",
           file_.path, printable(node.name), printable(node.op), printable(name));
    }
    arguments.push_back(value);
  }
  std::vector<Value> made = results(node, arguments);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    Value value =
        i < made.size() ? std::move(made[i]) : unsupported(node, arguments, "its further outputs are not supported");
    name_copy(node, node.outputs[i], value);
    folded_items_ += numbers_in(value);
    if (folded_items_ > most_folded_in_all)
      fail(Exit::bad_data, "'{}': it computes more than {} constant items", file_.path, most_folded_in_all);
    scope.values.insert_or_assign(node.outputs[i], std::move(value));
  }
}

/// Exporters of evaluation forms keep equal parameters once and copy them to their names.
void Importer::name_copy(const OpNode& node, const std::string& name, Value& value) {
  auto* constant = std::get_if<Constant>(&value);
  if (node.op != "Identity" || constant == nullptr || constant->tensor == nullptr || constant->is_node) return;
  if (is_made_up(name)) return;
  const auto trains = [](const OpNode& one) { return integer_of(one, "training_mode", 0) != 0; };
  if (std::any_of(file_.graph.nodes.begin(), file_.graph.nodes.end(), trains)) return;
  constant->alias = name;
}

/// The branch that a constant condition takes.
void Importer::run_if(const OpNode& node, Scope& scope, int depth) {
  const Value* condition = node.inputs.empty() ? nullptr : scope.find(node.inputs.front());
  const auto* known = condition == nullptr ? nullptr : std::get_if<Constant>(condition);
  const std::optional<double> which = known == nullptr ? std::nullopt : single_number(*known);
  const auto branch = node.attributes.find(which.value_or(0) != 0 ? "then_branch" : "else_branch");
  if (!which || branch == node.attributes.end() || branch->second.graph == nullptr) {
    const Arguments arguments{condition};
    const Value value = unsupported(node, condition == nullptr ? Arguments{} : arguments,
                                    "only conditions that are known before the network runs are supported");
    for (const std::string& name : node.outputs) scope.values.insert_or_assign(name, value);
    return;
  }
  const Subgraph& graph = *branch->second.graph;
  Scope inner{.values = {}, .outer = &scope};
  for (const Tensor& tensor : graph.initializers) inner.values[tensor.name] = constant_of(tensor, true);
  run_nodes(graph.nodes, inner, depth + 1);
  for (std::size_t i = 0; i < node.outputs.size() && i < graph.outputs.size(); ++i) {
    const Value* value = inner.find(graph.outputs[i].name);
    if (value == nullptr)
      fail(Exit::bad_data, "'{}': node '{}' has a branch without '{}'", file_.path, printable(node.name),
           printable(graph.outputs[i].name));
    Value copy = *value;
    scope.values.insert_or_assign(node.outputs[i], std::move(copy));
  }
}

void Importer::run_function(const OpNode& node, const Function& function, Scope& scope, int depth) {
  Scope inner;
  for (std::size_t i = 0; i < function.inputs.size() && i < node.inputs.size(); ++i) {
    if (const Value* value = scope.find(node.inputs[i])) inner.values[function.inputs[i]] = *value;
  }
  // Attributes that refer to the caller's; nodes must stay where they are, because constants point to them.
  std::vector<OpNode> nodes = function.nodes;
  bool refers = false;
  for (OpNode& one : nodes) {
    for (auto& [name, attribute] : one.attributes) {
      if (attribute.reference.empty()) continue;
      refers = true;
      const auto found = node.attributes.find(attribute.reference);
      if (found != node.attributes.end()) attribute = found->second;
    }
    if (one.name.empty() || !node.name.empty()) one.name = node.name + "/" + one.name;
  }
  if (refers) {
    for (const OpNode& one : nodes) {
      if (one.op == "Constant")
        fail(Exit::bad_data, "'{}': function '{}' has constants that its caller gives; they are not supported",
             file_.path, printable(node.op));
    }
  }
  run_nodes(refers ? nodes : function.nodes, inner, depth + 1);
  for (std::size_t i = 0; i < node.outputs.size() && i < function.outputs.size(); ++i) {
    if (const Value* value = inner.find(function.outputs[i])) {
      Value copy = *value;
      scope.values.insert_or_assign(node.outputs[i], std::move(copy));
    }
  }
}

std::vector<Value> Importer::results(const OpNode& node, const Arguments& arguments) {
  bool unknown = false;
  bool constant = true;
  for (const Value* value : arguments) {
    if (value == nullptr) continue;
    unknown = unknown || std::holds_alternative<Unknown>(*value);
    constant = constant && std::holds_alternative<Constant>(*value);
  }
  const std::size_t count = std::max<std::size_t>(node.outputs.size(), 1);
  // Why it is unknown has been said where that began.
  if (unknown) return std::vector<Value>(count, unsupported(node, arguments, ""));
  try {
    if (node.domain.empty() && node.op == "Constant") return {constant_of_node(node)};
    if (node.domain.empty() && constant) {
      std::vector<const Constant*> inputs;
      for (const Value* value : arguments) inputs.push_back(value == nullptr ? nullptr : &std::get<Constant>(*value));
      if (auto folded = fold(node, inputs, file_.opset)) {
        return {std::make_move_iterator(folded->begin()), std::make_move_iterator(folded->end())};
      }
    }
    if (node.domain.empty()) {
      if (auto made = results_on_views(node, arguments)) return std::move(*made);
    }
  } catch (const base::Error& error) {
    if (error.code() != Exit::bad_data) throw;
    return std::vector<Value>(count, unsupported(node, arguments, error.what()));
  }
  return std::vector<Value>(count, unsupported(node, arguments, remedy_of(node)));
}

Value Importer::unsupported(const OpNode& node, const Arguments& arguments, const std::string& why) {
  std::vector<int> srcs;
  for (const Value* value : arguments) {
    if (value == nullptr) continue;
    if (const auto* view = std::get_if<View>(value)) srcs.push_back(view->item);
    if (const auto* unknown = std::get_if<Unknown>(value)) srcs.push_back(unknown->item);
  }
  return Unknown{put(Item{.op = Symbol{.op = "unsupported", .trouble = why},
                          .srcs = std::move(srcs),
                          .shape = {},
                          .node = node.name,
                          .onnx_op = node.op})};
}

const View& Importer::view(const Arguments& arguments, std::size_t index) {
  if (!given(arguments, index)) fail(Exit::bad_data, "input {} is missing", index);
  const auto* found = std::get_if<View>(arguments[index]);
  if (found == nullptr)
    fail(Exit::bad_data, "its input {} is a constant; only what the network computes is supported there", index);
  return *found;
}

const Constant* Importer::constant_if(const Arguments& arguments, std::size_t index) {
  return given(arguments, index) ? std::get_if<Constant>(arguments[index]) : nullptr;
}

const Constant& Importer::constant(const Arguments& arguments, std::size_t index) {
  if (!given(arguments, index)) fail(Exit::bad_data, "input {} is missing", index);
  const Constant* found = constant_if(arguments, index);
  if (found == nullptr)
    fail(Exit::bad_data, "its input {} is computed by the network; only constants are supported there", index);
  return *found;
}

bool Importer::given(const Arguments& arguments, std::size_t index) {
  return index < arguments.size() && arguments[index] != nullptr;
}

View Importer::plain_source(const Arguments& arguments, std::size_t index, bool vector_too) {
  const View& source = view(arguments, index);
  const int rank = static_cast<int>(source.dims.size());
  const std::optional<View> found = plain(source);
  if (!found || (rank != spatial_count_ + 2 && !(vector_too && rank == 2)))
    fail(Exit::bad_data,
         "its source is a tensor whose dims are not samples, channels and {} of space; use permute or reshape only "
         "where they cancel out",
         spatial_count_);
  return *found;
}

int Importer::put(Item item) {
  if (item.node.empty() && node_ != nullptr) item.node = node_->name;
  if (item.onnx_op.empty() && node_ != nullptr) item.onnx_op = node_->op;
  items_.push_back(std::move(item));
  return static_cast<int>(items_.size()) - 1;
}

int Importer::put(const Op& op, std::vector<int> srcs, std::vector<Binding> bindings) {
  // The same of the same is made once, so that patterns find it, unless it is random or has parameters.
  if (bindings.empty() && !std::holds_alternative<Dropout>(op)) {
    const std::size_t end = items_.size() > 200 ? items_.size() - 200 : 0;
    for (std::size_t i = items_.size(); i-- > end;) {
      const Op* other = op_of(static_cast<int>(i));
      if (other != nullptr && items_[i].bindings.empty() && items_[i].srcs == srcs && *other == op)
        return static_cast<int>(i);
    }
  }
  std::vector<Shape> shapes;
  for (const int src : srcs) shapes.push_back(shape(src));
  const Shape dst = infer_shape(op, shapes);
  return put(Item{
      .op = op, .srcs = std::move(srcs), .shape = dst, .node = {}, .onnx_op = {}, .bindings = std::move(bindings)});
}

int Importer::put(const Symbol& symbol, std::vector<int> srcs, const Shape& shape) {
  const std::size_t end = items_.size() > 200 ? items_.size() - 200 : 0;
  for (std::size_t i = items_.size(); i-- > end;) {
    const auto* other = std::get_if<Symbol>(&items_[i].op);
    if (other != nullptr && *other == symbol && items_[i].srcs == srcs && symbol.op != "random")
      return static_cast<int>(i);
  }
  return put(Item{.op = symbol, .srcs = std::move(srcs), .shape = shape, .node = {}, .onnx_op = {}});
}

const Symbol* Importer::symbol(int item, const char* name) const {
  const auto* found = std::get_if<Symbol>(&items_[static_cast<std::size_t>(item)].op);
  return found != nullptr && found->op == name ? found : nullptr;
}

}  // namespace orthant::model::onnx
