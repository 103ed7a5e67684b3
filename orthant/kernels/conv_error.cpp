#include "orthant/kernels/conv_error.hpp"

#include "orthant/base/random.hpp"
#include "orthant/kernels/direct/geometry.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::kernels {
namespace {

using model::ConvTask;
using model::Pass;
using tensor::Dim;

/// A convolution's geometry with its tensors, item by item in double.
class Reference {
 public:
  Reference(const ConvTask& task, std::span<void* const> arguments)
      : task_(task),
        arguments_(arguments),
        in_(task.src.extents.c / task.groups),
        out_(task.dst.extents.c / task.groups),
        taps_(tensor::taps(task.window)) {}

  /// Items of the result.
  [[nodiscard]] std::int64_t size() const {
    if (task_.pass == Pass::backward_weights) return task_.groups * taps_ * in_ * out_;
    return tensor::volume(result_layout().extents);
  }

  [[nodiscard]] double computed(std::int64_t index) const {
    return result()[task_.pass == Pass::backward_weights ? index : offset(result_layout(), position(index))];
  }

  [[nodiscard]] double exact(std::int64_t index) const {
    switch (task_.pass) {
      case Pass::forward: return forward(position(index));
      case Pass::backward_data: return backward_data(position(index));
      case Pass::backward_weights: return backward_weights(index);
    }
    return 0;
  }

 private:
  [[nodiscard]] const float* floats(std::size_t i) const { return static_cast<const float*>(arguments_[i]); }
  [[nodiscard]] const float* result() const { return floats(task_.pass == Pass::forward ? 3 : 2); }
  [[nodiscard]] const tensor::Layout& result_layout() const {
    return task_.pass == Pass::forward ? task_.dst : task_.src;
  }

  static std::int64_t offset(const tensor::Layout& layout, const tensor::Shape& at) {
    std::int64_t offset = layout.offset;
    for (const Dim dim : tensor::all_dims) offset += at[dim] * layout.strides[dim];
    return offset;
  }

  [[nodiscard]] tensor::Shape position(std::int64_t index) const {
    tensor::Shape at;
    for (const Dim dim : tensor::all_dims) {
      const std::int64_t extent = result_layout().extents[dim];
      at[dim] = index % extent;
      index /= extent;
    }
    return at;
  }

  [[nodiscard]] double weight(std::int64_t group, std::int64_t tap, std::int64_t i, std::int64_t o) const {
    return floats(1)[((group * taps_ + tap) * in_ + i) * out_ + o];
  }

  /// Which cell of src a tap reads for a cell of dst; false if it lies outside.
  [[nodiscard]] bool src_cell(const tensor::Shape& dst, std::int64_t tap, tensor::Shape& src) const {
    const tensor::Window& window = task_.window;
    src.n = dst.n;
    for (const Dim dim : {Dim::w, Dim::h, Dim::d}) {
      src[dim] = dst[dim] * window.stride[dim] - window.pad_lo[dim] + tap % window.size[dim] * window.dilation[dim];
      tap /= window.size[dim];
      if (src[dim] < 0 || src[dim] >= task_.src.extents[dim]) return false;
    }
    return true;
  }

  /// Which cell of dst reads a cell of src by a tap; false if none does.
  [[nodiscard]] bool dst_cell(const tensor::Shape& src, std::int64_t tap, tensor::Shape& dst) const {
    const tensor::Window& window = task_.window;
    dst.n = src.n;
    for (const Dim dim : {Dim::w, Dim::h, Dim::d}) {
      const std::int64_t from = src[dim] + window.pad_lo[dim] - tap % window.size[dim] * window.dilation[dim];
      tap /= window.size[dim];
      dst[dim] = from / window.stride[dim];
      if (from < 0 || from % window.stride[dim] != 0 || dst[dim] >= task_.dst.extents[dim]) return false;
    }
    return true;
  }

  [[nodiscard]] double forward(const tensor::Shape& at) const {
    const std::int64_t group = at.c / out_;
    double sum = task_.bias ? floats(2)[at.c] : 0.0;
    tensor::Shape cell;
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      if (!src_cell(at, tap, cell)) continue;
      for (std::int64_t i = 0; i < in_; ++i) {
        cell.c = group * in_ + i;
        sum += floats(0)[offset(task_.src, cell)] * weight(group, tap, i, at.c % out_);
      }
    }
    return activated(sum);
  }

  [[nodiscard]] double activated(double value) const {
    switch (task_.activation.kind) {
      case model::ActivationKind::identity: return value;
      case model::ActivationKind::relu: return std::max(value, 0.0);
      case model::ActivationKind::leaky_relu: return value < 0 ? value * task_.activation.slope : value;
      case model::ActivationKind::tanh: return std::tanh(value);
      case model::ActivationKind::sigmoid: return 1 / (1 + std::exp(-value));
      case model::ActivationKind::relu6:
      case model::ActivationKind::hard_sigmoid:
      case model::ActivationKind::elu:
      case model::ActivationKind::silu:
      case model::ActivationKind::gelu:
      case model::ActivationKind::hard_swish: break;  // no part of a convolution
    }
    return value;
  }

  [[nodiscard]] double backward_data(const tensor::Shape& at) const {
    const std::int64_t group = at.c / in_;
    double sum = 0;
    tensor::Shape cell;
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      if (!dst_cell(at, tap, cell)) continue;
      for (std::int64_t o = 0; o < out_; ++o) {
        cell.c = group * out_ + o;
        sum += floats(0)[offset(task_.dst, cell)] * weight(group, tap, at.c % in_, o);
      }
    }
    return sum;
  }

  [[nodiscard]] double backward_weights(std::int64_t index) const {
    const std::int64_t o = index % out_;
    const std::int64_t i = index / out_ % in_;
    const std::int64_t tap = index / (out_ * in_) % taps_;
    const std::int64_t group = index / (out_ * in_ * taps_);
    const tensor::Shape& extents = task_.dst.extents;
    double sum = 0;
    tensor::Shape to{.n = 0, .c = group * out_ + o, .d = 0, .h = 0, .w = 0};
    tensor::Shape from;
    for (to.n = 0; to.n < extents.n; ++to.n) {
      for (to.d = 0; to.d < extents.d; ++to.d) {
        for (to.h = 0; to.h < extents.h; ++to.h) {
          // Along w only the ends can lie outside.
          direct::Range inside{0, extents.w};
          for (to.w = inside.lo; to.w < inside.hi && !src_cell(to, tap, from); ++to.w) ++inside.lo;
          if (inside.lo == inside.hi) continue;
          from.c = group * in_ + i;
          const float* src = floats(0) + offset(task_.src, from);
          const float* diff = floats(1) + offset(task_.dst, to);
          for (to.w = inside.hi - 1; !src_cell(to, tap, from); --to.w) --inside.hi;
          const std::int64_t src_step = task_.window.stride.w * task_.src.strides.w;
          for (std::int64_t w = 0; w < inside.hi - inside.lo; ++w)
            sum += static_cast<double>(src[w * src_step]) * diff[w * task_.dst.strides.w];
        }
      }
    }
    return sum;
  }

  const ConvTask& task_;
  std::span<void* const> arguments_;
  std::int64_t in_, out_, taps_;
};

}  // namespace

double sampled_error(const ConvTask& task, std::span<void* const> arguments) {
  constexpr std::uint64_t samples = 200;
  const Reference reference(task, arguments);
  double difference = 0;
  double size = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const auto index = static_cast<std::int64_t>(base::keyed(1, i) % static_cast<std::uint64_t>(reference.size()));
    const double exact = reference.exact(index);
    difference += std::pow(reference.computed(index) - exact, 2);
    size += exact * exact;
  }
  return std::sqrt(difference / size);
}

}  // namespace orthant::kernels
