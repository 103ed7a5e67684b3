#include "orthant/model/work.hpp"

#include "orthant/base/checked.hpp"

namespace orthant::model {
namespace {

using base::checked_add;
using base::checked_product;
using tensor::Shape;

/// Forward flops from the shapes of source and destination.
struct ForwardFlops {
  Shape src, dst;

  std::int64_t operator()(const Conv& op) const {
    return checked_product({2, tensor::pixels(dst), dst.c, tensor::taps(op.window), src.c / op.groups});
  }
  std::int64_t operator()(const ConvTranspose& op) const {
    return checked_product({2, tensor::pixels(src), src.c, tensor::taps(op.window), dst.c / op.groups});
  }
  std::int64_t operator()(const Dense&) const { return checked_product({2, dst.n, dst.c, src.c}); }
  template <class Other>
  std::int64_t operator()(const Other&) const {
    return 0;
  }
};

bool is_conv(const Op& op) { return std::holds_alternative<Conv>(op) || std::holds_alternative<ConvTranspose>(op); }

}  // namespace

NodeWork work_of(const Graph& graph, int node) {
  const Node& here = graph.nodes[node];
  const Shape src = here.srcs.empty() ? here.shape : graph.nodes[here.srcs.front()].shape;
  NodeWork work;
  work.flops = std::visit(ForwardFlops{src, here.shape}, here.op);
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
    if (is_conv(graph.nodes[node].op))
      total.conv_flops = checked_add(total.conv_flops, base::checked_mul(3, work.flops));
  }
  return total;
}

}  // namespace orthant::model
