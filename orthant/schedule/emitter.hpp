#pragma once

#include "orthant/schedule/analysis.hpp"

#include <iterator>
#include <string>
#include <utility>

namespace orthant::schedule {

/// Owns the steps and buffers of a schedule while it is made. Steps get the node and phase that were set last.
class Emitter {
 public:
  Emitter(const Analysis& analysis, const LowerOptions& options, Schedule& schedule)
      : analysis_(analysis), options_(options), schedule_(schedule) {
    // Steps are large, so that it costs much to move them all when their list grows.
    schedule_.steps.reserve(8 * analysis.units().size() * analysis.micro_batches().size() + 64);
  }

  void set_node(int node) { node_ = node; }
  void set_phase(Phase phase) { phase_ = phase; }
  [[nodiscard]] int node() const { return node_; }
  [[nodiscard]] Phase phase() const { return phase_; }

  [[nodiscard]] const Buffer& buffer(int index) const { return at(schedule_.buffers, index); }
  [[nodiscard]] Buffer& buffer(int index) { return at(schedule_.buffers, index); }
  /// The buffer that has the memory of `index`: itself, or the one it is a piece of.
  [[nodiscard]] int root_of(int index) const;
  int add_buffer(std::string name, std::int64_t bytes, bool persistent = false);
  int add_piece(std::string name, int inside, std::int64_t offset_bytes, std::int64_t bytes);
  /// A tensor of floats for the box, channels last; an empty value if the box is empty.
  Value add_tensor(const std::string& name, const tensor::Box& box);
  /// One tensor for boxes that differ only in their channels, side by side.
  Tensor add_tensor(const std::string& name, const std::vector<tensor::Box>& boxes);

  void emit(Step step);
  void emit(std::vector<Step> steps);
  /// The beginning or the end of messages.
  void emit(std::string name, const std::variant<Start, Finish>& work, std::vector<int> arguments);
  /// A task of a node, named "<node>.<what>".
  void emit(int node, const std::string& what, model::Task task, std::vector<int> arguments);
  [[nodiscard]] Step make_step(int node, const std::string& what, model::Task task, std::vector<int> arguments) const;
  void copy(int node, const std::string& what, const Value& from, const Value& to);
  /// Weights as the kernel of a convolution wants them; nothing if that is not known. An error names the step.
  [[nodiscard]] PreparedWeights prepared_weights(const std::string& step, const model::ConvTask& task) const;
  /// The last step that was emitted also uses a buffer.
  void add_argument(int buffer) { schedule_.steps.back().arguments.push_back(buffer); }

  /// Keeps the steps that `emit_steps` emits for later: they are work for a time in which messages travel.
  template <class EmitSteps>
  void defer(EmitSteps emit_steps) {
    const auto first = static_cast<std::ptrdiff_t>(schedule_.steps.size());
    emit_steps();
    std::move(schedule_.steps.begin() + first, schedule_.steps.end(), std::back_inserter(deferred_));
    schedule_.steps.resize(static_cast<std::size_t>(first));
  }
  [[nodiscard]] bool has_deferred() const { return !deferred_.empty(); }
  void emit_deferred() { emit(std::exchange(deferred_, {})); }

  /// Sets the first and last steps of all buffers; `kept` ones stay to the end.
  void find_lifetimes(const std::vector<int>& kept);

 private:
  [[nodiscard]] std::int64_t scratch_bytes(const Step& step) const;

  const Analysis& analysis_;
  const LowerOptions& options_;
  Schedule& schedule_;
  int node_ = 0;
  Phase phase_ = Phase::forward;
  std::vector<Step> deferred_;
};

}  // namespace orthant::schedule
