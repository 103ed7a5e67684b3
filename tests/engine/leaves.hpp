#pragma once

#include "orthant/model/graph.hpp"
#include "tests/engine/interpreter.hpp"

#include <string>
#include <vector>

namespace orthant::test {

/// The schedule of a graph on one rank.
schedule::Schedule lowered(const model::Graph& graph, const schedule::LowerOptions& options);

/// Fills input, target, parameters and optimizer state with random floats.
void fill(Interpreter& interpreter, const model::Graph& graph);

/// What is differentiated, and the buffer its gradient lands in.
struct Leaf {
  std::string name;
  int value = -1, gradient = -1;
  tensor::Layout layout = tensor::as_other;  ///< of the gradient; it fills its buffer if not given
};

std::vector<Leaf> leaves(const schedule::Schedule& schedule);

/// A leaf's gradient in the order of its value.
Numbers gradient_of(Interpreter& interpreter, const Leaf& leaf);

/// The size that errors of gradients are measured against at least: a share of all gradients together. Some vanish,
/// like that of a bias before a normalisation.
double gradient_floor(Interpreter& interpreter);

}  // namespace orthant::test
