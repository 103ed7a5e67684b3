#pragma once

#include "orthant/kernels/onednn/call.hpp"
#include "orthant/model/task.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace orthant::wrapper {

/// A convolution as a program asks oneDNN for it, in memory that is dense and not blocked. Memory is described with as
/// many spatial dims as the program has (1 to 3).
struct Problem {
  model::Pass pass = model::Pass::forward;
  std::int64_t groups = 1;
  bool bias = false;
  /// Of the convolution: gradients are described as what they are gradients of. `bias` is of no format without one.
  dnnl_memory_desc_t src{}, weights{}, bias_memory{}, dst{};
  tensor::Window window;
  /// As oneDNN has them: dilation counted from 0.
  std::array<std::int64_t, 3> strides{}, dilates{}, pad_lo{}, pad_hi{};

  [[nodiscard]] int spatial_dims() const { return src.ndims - 2; }
  [[nodiscard]] std::int64_t samples() const { return src.dims[0]; }
};

/// The convolution of an operation, with a layout chosen wherever the program left that to the library: where it named
/// none at all, the one that programs hold their tensors in (channels first), so that it has nothing to reorder.
/// Nothing if the operation is not a convolution in float32, or in memory that a kernel of ours could not read.
/// `op` is what dnnl_primitive_desc_create takes; with the result `op` has the layouts that were chosen.
struct Request {
  Problem problem;
  dnnl_convolution_desc_t op{};
};
std::optional<Request> read_request(const_dnnl_op_desc_t op);

/// True if nothing but the convolution is asked for: no operation after it, no scale, float32 arithmetic.
bool is_plain(const_dnnl_primitive_attr_t attributes);

/// Everything that distinguishes problems, as numbers.
using Key = std::array<std::int64_t, 64>;
Key key_of(const Problem& problem);

/// The same for people and files, without the number of samples.
std::string to_text(const Problem& problem);

/// The extents of a tensor, five dims.
tensor::Shape shape_of(const dnnl_memory_desc_t& memory);

/// True if two descriptions mean the same order of the same items; strides of dims with one item do not matter.
bool is_same_order(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b);

/// Dense memory whose dims lie in the order of the numbers: {0, 2, 3, 1} is channels-last.
dnnl_memory_desc_t dense_memory(int count, const dnnl_dim_t* dims, const std::array<int, 6>& order);
/// Samples, space, channels.
dnnl_memory_desc_t channels_last(const dnnl_memory_desc_t& memory);

}  // namespace orthant::wrapper
