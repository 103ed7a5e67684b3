#pragma once

#include "orthant/model/onnx/constant.hpp"
#include "orthant/model/onnx/value.hpp"
#include "orthant/model/onnx/view.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace orthant::model::onnx {

/// Names of values in one graph; those of an inner graph see the outer ones.
struct Scope {
  std::map<std::string, Value> values;
  const Scope* outer = nullptr;
  [[nodiscard]] const Value* find(const std::string& name) const;
};

/// Ops that may read what the network computes. Those of constants are more.
const std::set<std::string>& supported_ops();

/// Runs through the nodes of a file once, in order. What is constant is computed, what moves nothing becomes a view,
/// and the rest becomes items, which are made simpler where they complete a pattern.
class Importer {
 public:
  /// `sample` is the network's source. `file` must outlive the importer.
  Importer(const ModelFile& file, const tensor::Shape& sample, int spatial_count);

  void run();
  /// What a name stands for after run(); null if nothing has that name.
  [[nodiscard]] const Value* find(const std::string& name) const { return top_.find(name); }
  /// An item in the order of the model's dims that is a view's tensor; makes ops that move channels if need be.
  std::optional<View> plain(const View& view);
  [[nodiscard]] const std::vector<Item>& items() const { return items_; }
  [[nodiscard]] std::vector<Item>& items() { return items_; }
  /// What was left out, for the user.
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  friend struct Patterns;
  using Arguments = std::vector<const Value*>;
  struct Row;

  void run_nodes(const std::vector<OpNode>& nodes, Scope& scope, int depth);
  void run_node(const OpNode& node, Scope& scope, int depth);
  void name_copy(const OpNode& node, const std::string& name, Value& value);
  void run_if(const OpNode& node, Scope& scope, int depth);
  void run_function(const OpNode& node, const Function& function, Scope& scope, int depth);
  std::vector<Value> results(const OpNode& node, const Arguments& arguments);
  std::optional<std::vector<Value>> results_on_views(const OpNode& node, const Arguments& arguments);

  // arguments
  [[nodiscard]] static const View& view(const Arguments& arguments, std::size_t index);
  [[nodiscard]] static const Constant& constant(const Arguments& arguments, std::size_t index);
  [[nodiscard]] static const Constant* constant_if(const Arguments& arguments, std::size_t index);
  [[nodiscard]] static bool given(const Arguments& arguments, std::size_t index);
  /// The view as n x c x space. Throws Error if it is something else.
  View plain_source(const Arguments& arguments, std::size_t index, bool vector_too = false);

  // items
  int put(Item item);
  int put(const Op& op, std::vector<int> srcs, std::vector<Binding> bindings = {});
  int put(const Symbol& symbol, std::vector<int> srcs, const tensor::Shape& shape);
  [[nodiscard]] const tensor::Shape& shape(int item) const { return items_[static_cast<std::size_t>(item)].shape; }
  [[nodiscard]] const Op* op_of(int item) const { return std::get_if<Op>(&items_[static_cast<std::size_t>(item)].op); }
  template <class Kind>
  [[nodiscard]] const Kind* as(int item) const {
    const Op* op = op_of(item);
    return op == nullptr ? nullptr : std::get_if<Kind>(op);
  }
  [[nodiscard]] const Symbol* symbol(int item, const char* name) const;
  [[nodiscard]] int src(int item, std::size_t index = 0) const {
    return items_[static_cast<std::size_t>(item)].srcs.at(index);
  }
  Value unsupported(const OpNode& node, const Arguments& arguments, const std::string& why);

  // cellwise.cpp
  std::optional<Value> binary(const OpNode& node, const Arguments& arguments);
  std::optional<Value> unary(const OpNode& node, const Arguments& arguments);
  std::optional<Value> clip(const OpNode& node, const Arguments& arguments);
  Value with_constant(const std::string& op, const View& source, const Constant& constant, bool constant_first);
  Value with_channels(const std::string& op, const View& source, const Constant& constant);
  Value of_two(const std::string& op, View a, View b);
  int spread_cells(int item, const tensor::Shape& shape);
  int scale(int item, double factor);
  int add_number(int item, double number);
  int activate(int item, ActivationKind kind, double slope = 0.01);
  int multiply(int a, int b);
  int divide(int a, int b);
  /// Which of the dims of a view runs over all channels.
  [[nodiscard]] std::optional<std::size_t> channel_dim(const View& view) const;
  /// The constant as one item per channel, if that is what it is against `source`.
  [[nodiscard]] std::optional<Constant> per_channel(const View& source, const Constant& constant) const;

  // windows.cpp
  Value conv(const OpNode& node, const Arguments& arguments);
  Value conv_transpose(const OpNode& node, const Arguments& arguments);
  Value pool(const OpNode& node, const Arguments& arguments);
  Value pad(const OpNode& node, const Arguments& arguments);
  Value resize(const OpNode& node, const Arguments& arguments);
  [[nodiscard]] tensor::Extent3 spatial_list(const Extents& values, std::int64_t fallback) const;
  tensor::Window window_of(const OpNode& node, const Extents& kernel, const tensor::Shape& src) const;
  int without_pad(int item, tensor::Window& window, double outside, bool only_bare) const;

  // dense.cpp
  Value gemm(const OpNode& node, const Arguments& arguments);
  Value matmul(const OpNode& node, const Arguments& arguments);
  Value dense(const View& source, const Constant& weight, const Constant* bias);

  // norms.cpp
  Value batch_norm(const OpNode& node, const Arguments& arguments);
  Value instance_norm(const OpNode& node, const Arguments& arguments);
  Value group_norm(const OpNode& node, const Arguments& arguments);
  Value layer_norm(const OpNode& node, const Arguments& arguments);
  Value prelu(const OpNode& node, const Arguments& arguments);
  Value softmax(const OpNode& node, const Arguments& arguments);
  Value reduce(const OpNode& node, const Arguments& arguments);
  Value global_pool(const OpNode& node, const Arguments& arguments);
  int mean_over_space(int item);
  int max_over_space(int item);
  int sample_norm(int item, const SampleNorm& norm, const Constant* weight, const Constant* bias);

  // shapes.cpp
  std::optional<std::vector<Value>> shape_op(const OpNode& node, const Arguments& arguments);
  Value concat(const OpNode& node, const Arguments& arguments);
  View slice(const View& source, std::size_t dim, std::int64_t first, std::int64_t count, std::int64_t step);
  Value gather(const OpNode& node, const Arguments& arguments);
  Value expand(const View& source, const Extents& extents);
  Value depth_to_space(const OpNode& node, const Arguments& arguments);
  std::optional<View> moved(const View& source);
  Value space_to_depth(const OpNode& node, const Arguments& arguments);

  const ModelFile& file_;
  int spatial_count_;  ///< of the file: 1, 2 or 3
  Scope top_;
  std::vector<Item> items_;
  std::vector<std::string> remarks_;
  const OpNode* node_ = nullptr;  ///< the one that is run
  std::int64_t steps_ = 0;        ///< nodes run so far, those of functions included
  std::int64_t folded_items_ = 0;
};

}  // namespace orthant::model::onnx
