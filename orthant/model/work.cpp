#include "orthant/model/work.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/model/traits.hpp"

namespace orthant::model {
namespace {

using base::checked_add;
using base::checked_product;
using tensor::Shape;

/// Of forward: a multiplication and an addition for every weight at every position of the window.
std::int64_t forward_flops(const OpTraits& traits, const Shape& src, const Shape& dst) {
  if (!traits.contraction) return 0;
  const bool transposed = is_transposed(traits.reads);
  const Shape& slid = transposed ? src : dst;
  const Shape& summed = transposed ? dst : src;
  const tensor::Window* window = window_of(traits.reads);
  return checked_product(
      {2, tensor::pixels(slid), slid.c, window ? tensor::taps(*window) : 1, summed.c / traits.contraction->groups});
}

}  // namespace

NodeWork work_of(const Graph& graph, int node) {
  const Node& here = graph.nodes[node];
  const Shape src = here.srcs.empty() ? here.shape : graph.nodes[here.srcs.front()].shape;
  NodeWork work;
  work.flops = forward_flops(traits_of(here.op), src, here.shape);
  work.activation_bytes = base::checked_mul(tensor::volume(here.shape), sizeof(float));
  for (const Parameter& parameter : node_parameters(graph, node)) {
    if (parameter.trainable) work.parameters = checked_add(work.parameters, count(parameter));
  }
  return work;
}

GraphWork work_of(const Graph& graph) {
  GraphWork total;
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) {
    const NodeWork work = work_of(graph, node);
    total.nodes.push_back(work);
    total.parameters = checked_add(total.parameters, work.parameters);
    total.forward_flops = checked_add(total.forward_flops, work.flops);
    total.activation_bytes = checked_add(total.activation_bytes, work.activation_bytes);
    const OpTraits traits = traits_of(graph.nodes[node].op);
    if (traits.contraction && window_of(traits.reads))
      total.conv_flops = checked_add(total.conv_flops, base::checked_mul(3, work.flops));
  }
  return total;
}

}  // namespace orthant::model
