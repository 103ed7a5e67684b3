#pragma once

#include "orthant/schedule/parameters.hpp"
#include "orthant/schedule/passes.hpp"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace orthant::schedule {

/// What a unit reads of a source, complete after `pending`: this rank's own cells are there before.
struct Fetching {
  Pending pending;
  Tensor tensor;
};

/// What this rank knows of a micro-batch on its way through the network.
struct MicroBatchState {
  std::vector<NodeValue> values;  ///< per node, of units' outs
  std::vector<Tensor> sources;    ///< per node, of units' mains: the first source as it was read
  std::vector<Tensor> gates;      ///< per node: the second source of a product as it was read, the peaks of all parts
  std::vector<int> extra;         ///< per node: argmax, peaks or saved statistics
  std::vector<std::vector<Value>> gradients;  ///< per node: what its readers have passed back
  std::vector<bool> activation_undone;        ///< per node: the gradient is already that before the activation
};

/// Lowers one rank: walks the units forward, then backward. How each op does it is in ops/; they share what is here.
class Lowering {
 public:
  Lowering(const Analysis& analysis, int rank, const LowerOptions& options);
  Schedule run();

  // The network, as the current micro-batch sees it.

  [[nodiscard]] const Analysis& analysis() const { return analysis_; }
  [[nodiscard]] const MicroBatch& micro_batch() const { return *micro_batch_; }
  [[nodiscard]] const LowerOptions& options() const { return options_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] bool trains() const { return options_.mode == Mode::train; }
  /// True if gradients of weights are added to those of an earlier micro-batch.
  [[nodiscard]] bool accumulates() const { return micro_batch_->index > 0; }
  [[nodiscard]] const Geometry& geometry() const { return *micro_batch_->geometry; }
  [[nodiscard]] const model::Node& node(int index) const { return at(geometry().graph.nodes, index); }
  [[nodiscard]] const plan::NodePlan& planned(int index) const { return analysis_.planned(index); }
  [[nodiscard]] const plan::Share& share(int index) const { return at(own_->shares, index); }
  [[nodiscard]] const tensor::Box& stored(int index) const { return at(own_->stored, index); }
  /// Channels of a node's parameters on this rank.
  [[nodiscard]] std::int64_t channel_count(int index) const;
  /// The activation a unit ends with; identity if it has none.
  [[nodiscard]] model::Activation activation(const Unit& unit) const { return activation_of(analysis_.graph(), unit); }
  /// A value's box in the mini-batch.
  [[nodiscard]] Port port(const Value& value) const;

  // What is known so far.

  [[nodiscard]] NodeValue& value(int index) { return at(state_->values, index); }
  [[nodiscard]] Tensor& source(const Unit& unit) { return at(state_->sources, unit.main); }
  [[nodiscard]] Tensor& gate(const Unit& unit) { return at(state_->gates, unit.main); }
  [[nodiscard]] int& extra(const Unit& unit) { return at(state_->extra, unit.out); }
  [[nodiscard]] std::vector<bool>& activation_undone() { return state_->activation_undone; }
  /// True if the only reader of a node's tensor may put something else into its memory, now or in backward.
  [[nodiscard]] bool may_overwrite(int index) const;

  // Where steps, messages and parameters go.

  Emitter& emitter() { return emitter_; }
  Exchanges& exchanges() { return exchanges_; }
  Parameters& parameters() { return parameters_; }
  Schedule& schedule() { return schedule_; }
  /// The ways of what a unit reads of a source, of the sums over some of a node's channels, and of what readers want of
  /// a node in place.
  const Route& reading_route(const Unit& unit, std::size_t source);
  const Route& partial_sums_route(int node);
  const Route& peaks_route(int node);
  void zero_doubles(int index, int buffer, std::int64_t count);
  /// The buffer of a node's prepared weights in one form, for all micro-batches; -1 before they are prepared.
  int& prepared_weights(int index, model::Pass pass, const std::string& form) {
    return prepared_.try_emplace({index, pass, form}, -1).first->second;
  }

  // Forward.

  /// The memory of a unit's result.
  NodeValue add_dst(const Unit& unit);
  /// What the unit reads of a source: in place where there is room for it, else gathered.
  Fetching begin_fetch(const Unit& unit, std::size_t source = 0);
  Tensor fetch(const Unit& unit, std::size_t source = 0);

  // Backward.

  [[nodiscard]] bool needs_gradient(int index) const { return analysis_.needs_gradient(index); }
  /// What the readers of a node passed back, summed until at most `most` remain.
  std::vector<Value> take_gradients(int index, std::size_t most);
  Value take_gradient(int index) { return take_gradients(index, 1).front(); }
  /// The gradient of a unit's result before its activation.
  Value before_activation(const Unit& unit);
  Value with_whole_pixels(const Unit& unit, const Value& gradient);
  /// The memory of `gradient` if nobody else reads it, else a new tensor.
  Value over(const Value& gradient, const std::string& name);
  /// A new tensor for the gradient of what the unit read of its first source.
  Tensor add_diff_src(const Unit& unit);
  /// Begins to send the gradient of what the unit read of a source to the source's owners.
  Returning begin_return(const Unit& unit, std::size_t source, const Tensor& gradient);
  /// The same, and gives them to the source.
  void pass_back(const Unit& unit, std::size_t source, const Tensor& gradient);
  void pass_to(int index, const Value& gradient);

 private:
  /// What this rank has of a geometry, per node.
  struct Own {
    std::vector<plan::Share> shares;
    std::vector<tensor::Box> stored;
    std::map<std::pair<int, int>, Route> routes;  ///< by node and source, or the numbers below
  };

  static constexpr int all_readers = -1, partial_sums = -2, peaks = -3;
  /// The route of this key, which `find()` makes if it is not known.
  template <class Find>
  const Route& known_route(int node, int source, Find find);
  const Route& filling_route(int node);
  void enter(const MicroBatch& micro_batch);
  [[nodiscard]] bool is_in(const StagePass& pass, int index) const;
  void forward_pass(const StagePass& pass);
  void backward_pass(const StagePass& pass);
  [[nodiscard]] std::vector<int> kept_buffers() const;

  const Analysis& analysis_;
  int rank_;
  LowerOptions options_;
  Schedule schedule_;
  Emitter emitter_;
  Exchanges exchanges_;
  Parameters parameters_;
  Tags tags_;
  std::vector<MicroBatchState> states_;  ///< per micro-batch
  std::map<std::tuple<int, model::Pass, std::string>, int> prepared_;
  std::map<const Geometry*, Own> own_of_;
  const MicroBatch* micro_batch_ = nullptr;
  Own* own_ = nullptr;
  MicroBatchState* state_ = nullptr;
};

/// True if the unit's backward reads its own output.
bool reads_own_output(const model::Graph& graph, const Unit& unit);

}  // namespace orthant::schedule
