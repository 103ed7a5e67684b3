#include "orthant/wrapper/problem.hpp"

#include "orthant/base/format.hpp"

#include <algorithm>
#include <cstring>

namespace orthant::wrapper {
namespace {

using model::Pass;

using Order = std::array<int, 6>;

Order in_order(int count) {
  Order order{};
  for (int i = 0; i < count; ++i) order[static_cast<std::size_t>(i)] = i;
  return order;
}

Order channels_last_order(int count) {
  Order order{0};
  for (int i = 2; i < count; ++i) order[static_cast<std::size_t>(i - 1)] = i;
  order[static_cast<std::size_t>(count - 1)] = 1;
  return order;
}

bool is_float(const dnnl_memory_desc_t& memory) {
  return memory.data_type == dnnl_f32 && memory.ndims >= 3 && memory.ndims <= 6 && memory.extra.flags == 0;
}

bool has_items(const dnnl_memory_desc_t& memory) {
  return std::all_of(memory.dims, memory.dims + memory.ndims,
                     [](dnnl_dim_t extent) { return extent > 0 && extent != DNNL_RUNTIME_DIM_VAL; });
}

bool is_any(const dnnl_memory_desc_t& memory) { return memory.format_kind == dnnl_format_kind_any; }

/// Strides without blocks, in any order of dims, but without gaps.
bool is_dense_and_strided(const dnnl_memory_desc_t& memory) {
  if (memory.format_kind != dnnl_blocked || memory.format_desc.blocking.inner_nblks != 0) return false;
  if (memory.offset0 != 0) return false;
  Order order = in_order(memory.ndims);
  const dnnl_dim_t* strides = memory.format_desc.blocking.strides;
  std::stable_sort(order.begin(), order.begin() + memory.ndims, [&](int a, int b) { return strides[a] < strides[b]; });
  dnnl_dim_t expected = 1;
  for (int i = 0; i < memory.ndims; ++i) {
    const int dim = order[static_cast<std::size_t>(i)];
    if (memory.padded_dims[dim] != memory.dims[dim]) return false;
    if (memory.dims[dim] == 1) continue;
    if (strides[dim] != expected) return false;
    expected *= memory.dims[dim];
  }
  return true;
}

bool is_channels_last(const dnnl_memory_desc_t& memory) { return is_same_order(memory, channels_last(memory)); }

/// The descriptions that a pass uses.
struct Roles {
  dnnl_memory_desc_t *src, *weights, *bias, *dst;
};

Roles roles_of(Pass pass, dnnl_convolution_desc_t& op) {
  switch (pass) {
    case Pass::forward: return {&op.src_desc, &op.weights_desc, &op.bias_desc, &op.dst_desc};
    case Pass::backward_data: return {&op.diff_src_desc, &op.weights_desc, &op.bias_desc, &op.diff_dst_desc};
    case Pass::backward_weights: break;
  }
  return {&op.src_desc, &op.diff_weights_desc, &op.diff_bias_desc, &op.diff_dst_desc};
}

std::optional<Pass> pass_of(dnnl_prop_kind_t kind) {
  switch (kind) {
    case dnnl_forward_training:
    case dnnl_forward_inference: return Pass::forward;
    case dnnl_backward_data: return Pass::backward_data;
    case dnnl_backward_weights: return Pass::backward_weights;
    default: return std::nullopt;
  }
}

/// Where one side is given and the other is not, both are alike: programs keep their tensors in one order.
void choose_layouts(const Roles& roles) {
  const bool last =
      (!is_any(*roles.src) && is_channels_last(*roles.src)) || (!is_any(*roles.dst) && is_channels_last(*roles.dst));
  for (dnnl_memory_desc_t* memory : {roles.src, roles.dst}) {
    if (!is_any(*memory)) continue;
    const int count = memory->ndims;
    *memory = dense_memory(count, memory->dims, last ? channels_last_order(count) : in_order(count));
  }
  dnnl_memory_desc_t& weights = *roles.weights;
  if (!is_any(weights)) return;
  Order order = in_order(weights.ndims);
  if (last) {
    const bool grouped = weights.ndims > roles.src->ndims;
    const Order within = channels_last_order(roles.src->ndims);
    for (int i = 0; i < roles.src->ndims; ++i)
      order[static_cast<std::size_t>(i + (grouped ? 1 : 0))] = within[static_cast<std::size_t>(i)] + (grouped ? 1 : 0);
  }
  weights = dense_memory(weights.ndims, weights.dims, order);
}

/// oneDNN's numbers for the dims that the program has, ours for d, h and w.
void read_window(const dnnl_convolution_desc_t& op, Problem& problem) {
  const int spatial = problem.spatial_dims();
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<std::size_t>(i);
    problem.strides[at] = op.strides[i];
    problem.dilates[at] = op.dilates[i];
    problem.pad_lo[at] = op.padding[0][i];
    problem.pad_hi[at] = op.padding[1][i];
    const tensor::Dim dim = tensor::spatial_dims[static_cast<std::size_t>(3 - spatial + i)];
    problem.window.size[dim] = problem.weights.dims[problem.weights.ndims - spatial + i];
    problem.window.stride[dim] = op.strides[i];
    problem.window.dilation[dim] = op.dilates[i] + 1;
    problem.window.pad_lo[dim] = op.padding[0][i];
    problem.window.pad_hi[dim] = std::max<std::int64_t>(op.padding[1][i], 0);
  }
}

bool suits(const Problem& problem) {
  const int spatial = problem.spatial_dims();
  for (std::size_t i = 0; i < static_cast<std::size_t>(spatial); ++i) {
    if (problem.strides[i] < 1 || problem.dilates[i] < 0 || problem.pad_lo[i] < 0) return false;
  }
  return is_dense_and_strided(problem.src) && is_dense_and_strided(problem.weights) &&
         is_dense_and_strided(problem.dst);
}

void append(Key& key, std::size_t& at, const dnnl_memory_desc_t& memory) {
  for (int i = 0; i < memory.ndims; ++i) {
    key[at++] = memory.dims[i];
    key[at++] = memory.format_desc.blocking.strides[i];
  }
}

std::string order_text(const dnnl_memory_desc_t& memory) {
  Order order = in_order(memory.ndims);
  const dnnl_dim_t* strides = memory.format_desc.blocking.strides;
  std::stable_sort(order.begin(), order.begin() + memory.ndims, [&](int a, int b) { return strides[a] > strides[b]; });
  std::string text;
  for (int i = 0; i < memory.ndims; ++i) text += static_cast<char>('a' + order[static_cast<std::size_t>(i)]);
  return text;
}

std::string extents_text(const dnnl_memory_desc_t& memory, int first) {
  std::vector<dnnl_dim_t> extents(memory.dims + first, memory.dims + memory.ndims);
  return fmt::format("{}", fmt::join(extents, "x"));
}

}  // namespace

dnnl_memory_desc_t dense_memory(int count, const dnnl_dim_t* dims, const Order& order) {
  dnnl_memory_desc_t memory{};
  memory.ndims = count;
  memory.data_type = dnnl_f32;
  memory.format_kind = dnnl_blocked;
  dnnl_dim_t stride = 1;
  for (int i = count - 1; i >= 0; --i) {
    const int dim = order[static_cast<std::size_t>(i)];
    memory.dims[dim] = memory.padded_dims[dim] = dims[dim];
    memory.format_desc.blocking.strides[dim] = stride;
    stride *= dims[dim];
  }
  return memory;
}

dnnl_memory_desc_t channels_last(const dnnl_memory_desc_t& memory) {
  return dense_memory(memory.ndims, memory.dims, channels_last_order(memory.ndims));
}

bool is_same_order(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b) {
  if (a.ndims != b.ndims || a.data_type != b.data_type || a.format_kind != dnnl_blocked ||
      b.format_kind != dnnl_blocked || a.extra.flags != 0 || b.extra.flags != 0) {
    return false;
  }
  const dnnl_blocking_desc_t& one = a.format_desc.blocking;
  const dnnl_blocking_desc_t& other = b.format_desc.blocking;
  if (one.inner_nblks != 0 || other.inner_nblks != 0) return false;
  for (int i = 0; i < a.ndims; ++i) {
    if (a.dims[i] != b.dims[i] || a.padded_dims[i] != b.padded_dims[i]) return false;
    if (a.dims[i] != 1 && one.strides[i] != other.strides[i]) return false;
  }
  return true;
}

std::optional<Request> read_request(const_dnnl_op_desc_t op) {
  if (!op || *static_cast<const dnnl_primitive_kind_t*>(op) != dnnl_convolution) return std::nullopt;
  Request request;
  std::memcpy(&request.op, op, sizeof(request.op));
  const auto pass = pass_of(request.op.prop_kind);
  const bool direct = request.op.alg_kind == dnnl_convolution_direct || request.op.alg_kind == dnnl_convolution_auto;
  if (!pass || !direct || request.op.accum_data_type != dnnl_f32) return std::nullopt;
  const Roles roles = roles_of(*pass, request.op);
  for (const dnnl_memory_desc_t* memory : {roles.src, roles.weights, roles.dst}) {
    if (!is_float(*memory) || !has_items(*memory)) return std::nullopt;
  }
  if (roles.src->ndims > 5 || roles.dst->ndims != roles.src->ndims) return std::nullopt;
  choose_layouts(roles);
  Problem& problem = request.problem;
  problem.pass = *pass;
  problem.bias = *pass != Pass::backward_data && roles.bias->ndims != 0;
  if (problem.bias && (roles.bias->ndims != 1 || roles.bias->data_type != dnnl_f32)) return std::nullopt;
  if (problem.bias) *roles.bias = dense_memory(1, roles.bias->dims, {0});
  problem.groups = roles.weights->ndims > roles.src->ndims ? roles.weights->dims[0] : 1;
  problem.src = *roles.src;
  problem.weights = *roles.weights;
  problem.dst = *roles.dst;
  if (problem.bias) problem.bias_memory = *roles.bias;
  read_window(request.op, problem);
  return suits(problem) ? std::optional(request) : std::nullopt;
}

Key key_of(const Problem& problem) {
  Key key{};
  std::size_t at = 0;
  key[at++] = static_cast<std::int64_t>(problem.pass);
  key[at++] = problem.groups;
  key[at++] = problem.bias ? 1 : 0;
  key[at++] = problem.src.ndims;
  key[at++] = problem.weights.ndims;
  append(key, at, problem.src);
  append(key, at, problem.weights);
  append(key, at, problem.dst);
  for (const auto* numbers : {&problem.strides, &problem.dilates, &problem.pad_lo, &problem.pad_hi})
    for (const std::int64_t number : *numbers) key[at++] = number;
  return key;
}

std::string to_text(const Problem& problem) {
  const int spatial = problem.spatial_dims();
  const auto list = [&](const std::array<std::int64_t, 3>& numbers) {
    return fmt::format("{}", fmt::join(numbers.begin(), numbers.begin() + spatial, "x"));
  };
  return fmt::format("{} {} to {} by {} groups {} bias {} strides {} dilates {} pads {} {} orders {} {} {}",
                     model::name_of(problem.pass), extents_text(problem.src, 1), extents_text(problem.dst, 1),
                     extents_text(problem.weights, problem.weights.ndims - spatial), problem.groups,
                     problem.bias ? 1 : 0, list(problem.strides), list(problem.dilates), list(problem.pad_lo),
                     list(problem.pad_hi), order_text(problem.src), order_text(problem.weights),
                     order_text(problem.dst));
}

tensor::Shape shape_of(const dnnl_memory_desc_t& memory) {
  tensor::Shape shape{.n = memory.dims[0], .c = memory.dims[1]};
  for (int i = 2; i < memory.ndims; ++i)
    shape[tensor::spatial_dims[static_cast<std::size_t>(5 - memory.ndims + i - 2)]] = memory.dims[i];
  return shape;
}

bool is_plain(const_dnnl_primitive_attr_t attributes) {
  if (!attributes) return true;
  dnnl_dim_t scales = 0;
  int mask = 0;
  const float* scale = nullptr;
  const_dnnl_post_ops_t after = nullptr;
  dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_strict;
  return dnnl_primitive_attr_get_output_scales(attributes, &scales, &mask, &scale) == dnnl_success && scales == 1 &&
         *scale == 1.0F && dnnl_primitive_attr_get_post_ops(attributes, &after) == dnnl_success &&
         dnnl_post_ops_len(after) == 0 && dnnl_primitive_attr_get_fpmath_mode(attributes, &mode) == dnnl_success &&
         mode == dnnl_fpmath_mode_strict;
}

}  // namespace orthant::wrapper
