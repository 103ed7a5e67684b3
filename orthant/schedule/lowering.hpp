#pragma once

#include "orthant/schedule/fusion.hpp"
#include "orthant/schedule/schedule.hpp"

#include <array>
#include <string>
#include <vector>

namespace orthant::schedule {

/// A tensor in memory.
struct Value {
  int buffer = -1;
  tensor::Layout layout;
  bool owned = true;  ///< no other value lies in this memory, so the last reader may write over it
};

/// The work of lower(): walks the units forward, then backward, emitting steps and buffers.
class Lowering {
 public:
  Lowering(const model::Graph& graph, const plan::Plan& plan, int rank, const LowerOptions& options);
  Schedule run();

 private:
  using Op = model::Op;

  // lower.cpp
  void declare_parameters();
  void mark_gradients();
  void find_lifetimes();
  void update();
  [[nodiscard]] const model::Node& node(int index) const { return graph_.nodes[static_cast<std::size_t>(index)]; }
  [[nodiscard]] tensor::Shape local_shape(int index) const;
  [[nodiscard]] const ParameterBuffers* parameter(int index, model::Parameter::Role role) const;
  [[nodiscard]] int value_of(int index, model::Parameter::Role role) const;
  [[nodiscard]] int gradient_of(int index, model::Parameter::Role role) const;
  int add_buffer(std::string name, std::int64_t bytes, bool persistent = false);
  Value add_tensor(const std::string& name, const tensor::Shape& extents);
  void emit(int index, const char* what, model::Task task, std::vector<int> arguments);

  // forward.cpp
  void forward(const Unit& unit);
  Value forward(const Unit& unit, const model::Input& op);
  Value forward(const Unit& unit, const model::Conv& op);
  Value forward(const Unit& unit, const model::ConvTranspose& op);
  Value forward(const Unit& unit, const model::Pool& op);
  Value forward(const Unit& unit, const model::GlobalAveragePool& op);
  Value forward(const Unit& unit, const model::Dense& op);
  Value forward(const Unit& unit, const model::BatchNorm& op);
  Value forward(const Unit& unit, const model::Activation& op);
  Value forward(const Unit& unit, const model::Softmax& op);
  Value forward(const Unit& unit, const model::Scale& op);
  Value forward(const Unit& unit, const model::Dropout& op);
  Value forward(const Unit& unit, const model::Add& op);
  Value forward(const Unit& unit, const model::Concat& op);
  Value forward(const Unit& unit, const model::Flatten& op);
  [[nodiscard]] const Value& src(const Unit& unit, std::size_t index = 0) const;
  Value dst(const Unit& unit);
  [[nodiscard]] bool may_overwrite(int index) const;
  void loss();

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
  [[nodiscard]] bool needs_gradient(int index) const { return needs_gradient_[static_cast<std::size_t>(index)]; }
  std::vector<Value> take_gradients(int index, std::size_t most);
  Value take_gradient(int index);
  Value before_activation(const Unit& unit);
  Value dense(const Unit& unit, const Value& gradient);
  Value over(const Value& gradient, const std::string& name, const tensor::Shape& extents);
  void pass_to(int index, const Value& gradient);
  Value diff_src(const Unit& unit, std::size_t index = 0);
  void pool_backward(const Unit& unit, model::PoolTask task);

  const model::Graph& graph_;
  const plan::Plan& plan_;
  int rank_;
  LowerOptions options_;
  std::vector<Unit> units_;
  std::vector<int> unit_of_;  ///< per node: the unit whose out it is, or -1
  std::vector<int> consumers_;
  std::vector<bool> needs_gradient_;
  std::vector<Value> values_;                  ///< per node, of units' outs
  std::vector<int> extra_;                     ///< per node: argmax or saved statistics
  std::vector<std::vector<Value>> gradients_;  ///< per node: what its readers have passed back
  std::vector<bool> activation_undone_;        ///< per node: the gradient is already that before the activation
  Phase phase_ = Phase::forward;
  Schedule schedule_;
};

/// The pooling that global average pooling is: a window over the whole extent.
model::Pool whole_window(const tensor::Shape& src);

/// True if the unit's backward reads its own output.
bool reads_own_output(const model::Graph& graph, const Unit& unit);

}  // namespace orthant::schedule
