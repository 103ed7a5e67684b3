#pragma once

#include "orthant/model/ops.hpp"

#include <functional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

namespace orthant::model {

enum class LossKind {
  mean_squared_error,
  mean_absolute_error,
  cross_entropy,  ///< softmax + negative log-likelihood of labels, mean over samples and voxels
  soft_dice,      ///< 1 - mean over classes of (2|pt| + s) / (|p| + |t| + s), p = softmax, s = 1e-5; mini-batch sums
};

const char* name_of(LossKind kind);

struct LossTerm {
  LossKind kind = LossKind::mean_squared_error;
  double weight = 1;
  bool operator==(const LossTerm&) const = default;
};

/// A weighted sum of terms. All terms take labels, or all take values of the output's shape.
struct Loss {
  std::vector<LossTerm> terms;
  bool operator==(const Loss&) const = default;
};

/// True if the target is class indices (n x d x h x w), false if it has the output's shape.
bool takes_labels(const Loss& loss);

/// A tensor of numbers that belongs to a node.
struct Parameter {
  enum class Role { weight, bias, norm_weight, norm_bias, running_mean, running_var };
  std::string name;  ///< PyTorch's: "<node>.weight", ".bias", ".running_mean", ".running_var"
  int node = 0;
  Role role = Role::weight;
  std::vector<std::int64_t> extents;  ///< as PyTorch has them, e.g. O I D H W; 2-D networks without D, 1-D without D H
  bool trainable = true;              ///< false for running statistics
};

/// A parameter as the file has it that the network came from.
struct Stored {
  Parameter::Role role = Parameter::Role::weight;
  std::string name;                         ///< in the file
  std::vector<std::int64_t> extents;        ///< in the file
  std::vector<std::int64_t> view, strides;  ///< item i of the parameter, as an index into `view`, lies at these strides
  bool constant = false;                    ///< it belongs to the network itself: files of weights do not have it
  /// Reads the starting values, in the order of the parameter; empty if it has none.
  std::function<void(std::span<float>)> fill{};
};

/// One op with the nodes it reads (indices into Graph::nodes, all smaller than its own).
struct Node {
  std::string name;  ///< unique; PyTorch's module path, so "<name>.weight" is the parameter's name
  Op op;
  std::vector<int> srcs;
  tensor::Shape shape;           ///< global shape of dst, n included
  std::vector<Stored> stored{};  ///< of those of its parameters that a file has otherwise, or starts
};

/// A network: ops in an order in which each comes after what it reads; the first is the Input, the last the output.
struct Graph {
  std::string name;
  int spatial_count = 3;  ///< 2: depth is 1 everywhere and files leave it out; 1: so is height
  std::vector<Node> nodes;
  Loss loss;
  std::vector<std::string> remarks{};  ///< what its reader left out or chose, for the user
  /// Where a network has several outputs: their names. The last node is the one that was chosen, and layers that only
  /// others need are left out; these are their parameters.
  std::vector<std::string> outputs{};
  std::vector<std::string> left_out{};
};

/// The network's name, and which output was chosen if it has several: "net, output side of out, side".
std::string title_of(const Graph& graph);

/// Builds a graph op by op, inferring and checking shapes; errors name the node.
class GraphBuilder {
 public:
  /// `sample` is the shape of the network's source with n = mini-batch.
  GraphBuilder(std::string name, int spatial_count, const tensor::Shape& sample);

  /// Appends an op; returns its index. Throws Error("<graph>: <node>: ...") if the op does not fit its sources.
  int add(const std::string& name, const Op& op, std::vector<int> srcs);
  /// Appends an op that reads the last one.
  int add(const std::string& name, const Op& op);
  [[nodiscard]] int last() const { return static_cast<int>(graph_.nodes.size()) - 1; }
  [[nodiscard]] const tensor::Shape& shape(int node) const;

  /// Checks the loss against the output and returns the graph.
  Graph finish(Loss loss);
  /// The same of a network with several outputs, any of its layers, of which one is chosen: layers that it does not
  /// depend on are left out.
  Graph finish(Loss loss, std::vector<std::string> outputs, const std::string& chosen);

 private:
  void keep_only(const std::string& output);

  Graph graph_;
  std::unordered_set<std::string> names_;
};

/// The shape of dst; throws Error (without the node's name) if the op does not accept the sources.
tensor::Shape infer_shape(const Op& op, const std::vector<tensor::Shape>& srcs);

/// The shape of the target as the loss wants it: the output's, or n x 1 x d x h x w for labels.
tensor::Shape target_shape(const Graph& graph);

/// Those of one node.
std::vector<Parameter> node_parameters(const Graph& graph, int node);
/// All parameters in node order. Conv weights are O x I/groups x taps, transposed ones I x O/groups x taps.
std::vector<Parameter> parameters(const Graph& graph);
std::int64_t count(const Parameter& parameter);
/// Trainable items of the whole network.
std::int64_t parameter_count(const Graph& graph);

}  // namespace orthant::model
