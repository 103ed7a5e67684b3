#pragma once

#include "orthant/schedule/fusion.hpp"
#include "orthant/schedule/passes.hpp"
#include "orthant/schedule/schedule.hpp"
#include "orthant/tensor/moves.hpp"

#include <string>
#include <utility>
#include <vector>

namespace orthant::schedule {

/// An item of a list by a node, rank, unit or buffer number.
template <class List>
decltype(auto) at(List& list, int index) {
  return list[static_cast<std::size_t>(index)];
}

/// A box of a tensor in memory.
struct Value {
  int buffer = -1;
  tensor::Box box;  ///< in the whole tensor; Box{} if this rank has nothing
  tensor::Layout layout;
  bool owned = true;  ///< no other value lies in this memory, so the last reader may write over it

  [[nodiscard]] bool empty() const { return tensor::is_empty(box); }
};

/// A part of `value`, in place.
Value part_of(const Value& value, const tensor::Box& box);

/// What a step reads of a source: boxes side by side in c, as one tensor.
struct Tensor {
  Value all;                  ///< `box` is that of the first piece
  std::vector<Value> pieces;  ///< per box
  bool copied = false;        ///< not in the memory of the source

  [[nodiscard]] bool empty() const { return pieces.empty(); }
};

Tensor as_tensor(const Value& value);

/// A node's dst on this rank: the box it owns within a larger one that has room for what its readers want of others.
struct NodeValue {
  Value own;
  Value stored;
  bool filled = false;  ///< the cells of others have arrived
};

/// An exchange that was started: the steps that remain to be done when its messages are there.
struct Pending {
  int exchange = -1;
  std::vector<Step> after;
  std::vector<Value> arrived;  ///< where `after` takes from
};

/// What a step reads of a source, complete after `pending`: this rank's own cells are there before.
struct Fetching {
  Pending pending;
  Tensor tensor;
};

/// Cells of a dst: those that need nothing of other ranks, and the others.
struct Slabs {
  tensor::Box own;
  std::vector<tensor::Box> edges;  ///< some may be empty
};

/// A gradient on its way to the owners of a source: `own` is this rank's, complete after `pending`.
struct Returning {
  Pending pending;
  Value own;
};

/// The samples that go through the network together, and what is known of them so far.
struct Micro {
  model::Graph graph;                            ///< with the micro-batch's number of samples
  std::int64_t first_sample = 0;                 ///< in the mini-batch
  std::vector<std::vector<plan::Share>> shares;  ///< per node and rank
  std::vector<std::vector<tensor::Box>> stored;  ///< per node and rank: what is kept of its dst
  std::vector<std::vector<tensor::Box>> filled;  ///< per node and rank: what readers want in place
  std::vector<std::vector<bool>> in_place;       ///< per node and source
  std::vector<NodeValue> values;                 ///< per node, of units' outs
  std::vector<Tensor> sources;                   ///< per node, of units' mains: the first source as it was read
  std::vector<int> extra;                        ///< per node: argmax or saved statistics
  std::vector<std::vector<Value>> gradients;     ///< per node: what its readers have passed back
  std::vector<bool> activation_undone;           ///< per node: the gradient is already that before the activation
};

/// A send that was not waited for yet.
struct UnsettledSend {
  const Micro* micro = nullptr;
  Phase phase = Phase::forward;
  Pending pending;
};

/// The work of lower(): walks the units forward, then backward, emitting steps and buffers.
class Lowering {
 public:
  Lowering(const model::Graph& graph, const plan::Plan& plan, int rank, const LowerOptions& options);
  Schedule run();

 private:
  // lower.cpp
  void make_micros();
  [[nodiscard]] bool is_in(const StagePass& pass, int index) const;
  void forward_pass(const StagePass& pass);
  void backward_pass(const StagePass& pass);
  void mark_gradients();
  void find_lifetimes();
  [[nodiscard]] const model::Node& node(int index) const { return at(micro_->graph.nodes, index); }
  [[nodiscard]] const plan::Share& share(int index) const { return at(at(micro_->shares, index), rank_); }
  [[nodiscard]] const plan::NodePlan& planned(int index) const { return at(plan_.nodes, index); }
  int add_buffer(std::string name, std::int64_t bytes, bool persistent = false);
  int add_piece(std::string name, int inside, std::int64_t offset_bytes, std::int64_t bytes);
  Value add_tensor(const std::string& name, const tensor::Box& box);
  void emit(int index, const std::string& what, model::Task task, std::vector<int> arguments);
  [[nodiscard]] int root_of(int buffer) const;
  [[nodiscard]] Step make_step(int index, const std::string& what, model::Task task, std::vector<int> arguments) const;

  // storage.cpp
  void find_storage(Micro& micro) const;
  [[nodiscard]] bool fits_in_place(const Micro& micro, const Unit& unit, std::size_t index) const;

  // exchange.cpp
  using Placed = std::vector<std::pair<int, Value>>;  ///< what goes to or comes from a rank
  Pending start(const std::string& name, Kind kind, const Placed& sends, const Placed& receives, bool accumulate,
                bool in_place = false);
  void settle(Pending pending);
  void finish(Pending pending);
  void settle_sends();
  void settle_forward_sends();
  int emit_start(Exchange exchange);
  void emit_finish(int index);
  int add_sums(const std::string& name, std::int64_t count, const std::vector<int>& ranks);
  int add_up(const std::string& name, Kind kind, int mine, std::int64_t count, const std::vector<int>& ranks);

  // fetch.cpp
  Fetching begin_fetch(const Unit& unit, std::size_t index = 0);
  Tensor fetch(const Unit& unit, std::size_t index = 0);
  Tensor gather(const std::string& name, Kind kind, const Value& own, const tensor::Traffic& traffic);
  Returning give_back(const std::string& name, Kind kind, const Tensor& gradient, const tensor::Traffic& traffic);
  Tensor add_pieces(const std::string& name, const std::vector<tensor::Box>& boxes);
  [[nodiscard]] tensor::Traffic traffic_of(const Unit& unit, std::size_t index) const;
  [[nodiscard]] tensor::Traffic partial_sums(int index) const;
  [[nodiscard]] tensor::Traffic loss_traffic() const;
  [[nodiscard]] bool is_local(const Unit& unit, std::size_t index) const;
  [[nodiscard]] Kind kind_of(const Unit& unit, std::size_t index) const;

  // forward.cpp
  void forward(const Unit& unit);
  NodeValue forward(const Unit& unit, const model::Input& op);
  NodeValue forward(const Unit& unit, const model::Conv& op);
  NodeValue forward(const Unit& unit, const model::ConvTranspose& op);
  NodeValue forward(const Unit& unit, const model::Pool& op);
  NodeValue forward(const Unit& unit, const model::GlobalAveragePool& op);
  NodeValue forward(const Unit& unit, const model::Dense& op);
  NodeValue forward(const Unit& unit, const model::BatchNorm& op);
  NodeValue forward(const Unit& unit, const model::Activation& op);
  NodeValue forward(const Unit& unit, const model::Softmax& op);
  NodeValue forward(const Unit& unit, const model::Scale& op);
  NodeValue forward(const Unit& unit, const model::Dropout& op);
  NodeValue forward(const Unit& unit, const model::Add& op);
  NodeValue forward(const Unit& unit, const model::Concat& op);
  NodeValue forward(const Unit& unit, const model::Flatten& op);
  [[nodiscard]] Slabs slabs_of(const Unit& unit, const model::Pool& op, tensor::Box box) const;
  NodeValue dst(const Unit& unit);
  [[nodiscard]] Port port(const Value& value) const;
  [[nodiscard]] std::int64_t local_groups(const Unit& unit, std::int64_t groups) const;
  [[nodiscard]] model::PoolTask pool_task(const Unit& unit, const model::Pool& op, const Value& x,
                                          const Value& y) const;
  [[nodiscard]] model::DropoutTask dropout_task(const Unit& unit, const model::Dropout& op, const Value& from,
                                                const Value& to) const;
  template <class Make>
  NodeValue contract(const Unit& unit, bool bias, Make make);
  Value contraction_dst(const Unit& unit, const NodeValue& y);
  void add_partial_sums(const Unit& unit, const Value& partial, const NodeValue& y);
  void bias_and_activation(const Unit& unit, const Value& y, bool bias);
  [[nodiscard]] bool sums_in_parts(const Unit& unit) const { return planned(unit.main).channel_parts > 1; }
  [[nodiscard]] bool may_overwrite(int index) const;
  void loss();
  Value dense_output(const Value& output);
  [[nodiscard]] std::vector<int> loss_ranks() const;
  void spread_losses();

  // backward.cpp
  void backward(const Unit& unit);
  void backward(const Unit& unit, const model::Input& op);
  void backward(const Unit& unit, const model::Conv& op);
  void backward(const Unit& unit, const model::ConvTranspose& op);
  void backward(const Unit& unit, const model::Pool& op);
  void backward(const Unit& unit, const model::GlobalAveragePool& op);
  void backward(const Unit& unit, const model::Dense& op);
  void backward(const Unit& unit, const model::BatchNorm& op);
  void backward(const Unit& unit, const model::Activation& op);
  void backward(const Unit& unit, const model::Softmax& op);
  void backward(const Unit& unit, const model::Scale& op);
  void backward(const Unit& unit, const model::Dropout& op);
  void backward(const Unit& unit, const model::Add& op);
  void backward(const Unit& unit, const model::Concat& op);
  void backward(const Unit& unit, const model::Flatten& op);
  [[nodiscard]] bool needs_gradient(int index) const { return at(needs_gradient_, index); }
  std::vector<Value> take_gradients(int index, std::size_t most);
  Value take_gradient(int index);
  Value before_activation(const Unit& unit);
  Value contraction_diff(const Unit& unit, const Value& diff);
  Value with_whole_pixels(const Unit& unit, const Value& gradient);
  Value over(const Value& gradient, const std::string& name);
  Tensor diff_src(const Unit& unit);
  Returning begin_return(const Unit& unit, std::size_t index, const Tensor& gradient);
  void pass_back(const Unit& unit, std::size_t index, const Tensor& gradient);
  void pass_to(int index, const Value& gradient);
  template <class Data, class Weights>
  void backward_both(const Unit& unit, Data data, Weights weights);
  template <class Make>
  void contract_backward(const Unit& unit, bool bias, Make make);
  [[nodiscard]] bool shares_statistics(int index) const;
  [[nodiscard]] bool is_large(int index) const;
  void emit_put_off();
  void bias_backward(const Unit& unit, const Value& diff);
  [[nodiscard]] bool accumulates() const { return micro_ != &micros_.front(); }

  // parameters.cpp
  void declare_parameters();
  void fill_buckets();
  void reduce_gradients(int unit);
  void finish_buckets(std::size_t in_flight);
  [[nodiscard]] std::pair<Placed, Placed> shares_of(const Bucket& bucket, int buffer) const;
  void finish_parameters();
  void keep_gradients(std::size_t count);
  [[nodiscard]] bool reads_in_place() const;
  [[nodiscard]] int bucket_tags() const;
  void update(const Bucket& bucket, const std::vector<Value>& arrived);
  [[nodiscard]] const ParameterBuffers* parameter(int index, model::Parameter::Role role) const;
  [[nodiscard]] int value_of(int index, model::Parameter::Role role) const;
  [[nodiscard]] int gradient_of(int index, model::Parameter::Role role) const;
  void zero_gradients(int index);
  void zero_doubles(int index, int buffer, std::int64_t count);
  [[nodiscard]] std::int64_t channel_count(int index) const;

  const model::Graph& graph_;
  const plan::Plan& plan_;
  int rank_;
  LowerOptions options_;
  std::vector<Unit> units_;
  std::vector<int> unit_of_;  ///< per node: the unit whose out it is, or -1
  std::vector<int> consumers_;
  std::vector<bool> needs_gradient_;
  std::vector<Micro> micros_;
  Micro* micro_ = nullptr;  ///< the one being walked
  bool has_stages_ = false;
  int current_node_ = 0;
  Phase phase_ = Phase::forward;
  int tag_ = 0;
  std::vector<Step> put_off_;  ///< to be done while the next sums travel
  std::vector<UnsettledSend> unsettled_sends_;
  std::vector<int> last_unit_;                     ///< per bucket: the unit whose gradient comes last
  std::vector<int> bucket_tag_;                    ///< per bucket
  std::vector<std::pair<int, Pending>> reducing_;  ///< buckets whose gradients are being summed
  std::vector<int> read_by_others_;                ///< buckets whose gradients other ranks may still be reading
  std::vector<Pending> spreading_;                 ///< results on their way to all holders
  Schedule schedule_;
};

/// The pooling that global average pooling is: a window over the whole extent.
model::Pool whole_window(const tensor::Shape& src);

/// The channels-first view of a flattened tensor.
tensor::Layout unflattened(const Value& flat, const tensor::Shape& extents);

/// True if the unit's backward reads its own output.
bool reads_own_output(const model::Graph& graph, const Unit& unit);

}  // namespace orthant::schedule
