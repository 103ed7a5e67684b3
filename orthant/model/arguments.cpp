#include "orthant/model/arguments.hpp"

#include "orthant/base/checked.hpp"

#include <algorithm>
#include <cassert>

namespace orthant::model {
namespace {

using tensor::Layout;
using enum Access;
using enum ItemType;
using enum Presence;
using List = std::vector<Argument>;

/// `count` items side by side.
Layout items(std::int64_t count) { return tensor::channels_last({.n = 1, .c = count}); }

const Layout& given_or(const Layout& layout, const Layout& otherwise) {
  return tensor::is_given(layout) ? layout : otherwise;
}

Presence required_if(bool condition) { return condition ? required : null; }
Access write_or_add(bool accumulate) { return accumulate ? update : write; }

/// The cells of one dim that taps reach.
struct Reach {
  tensor::Range box;
  std::int64_t cells = 0;
};

Reach reach_of(const tensor::Window& window, tensor::Dim dim, std::int64_t src, std::int64_t dst) {
  const std::int64_t size = window.size[dim], stride = window.stride[dim];
  if (dst > 0 && window.dilation[dim] == 1 && size >= stride) {
    // The taps of one cell are side by side and meet those of the next: together they are one range, cut to src.
    const std::int64_t lo = std::max<std::int64_t>(0, -window.pad_lo[dim]);
    const std::int64_t hi = std::min(src, (dst - 1) * stride - window.pad_lo[dim] + size);
    return {.box = {lo, hi}, .cells = std::max<std::int64_t>(0, hi - lo)};
  }
  std::vector<bool> is_read(static_cast<std::size_t>(src), false);
  Reach reach{.box = {src, 0}};
  for (std::int64_t i = 0; i < dst; ++i) {
    for (std::int64_t tap = 0; tap < size; ++tap) {
      const std::int64_t cell = i * stride - window.pad_lo[dim] + tap * window.dilation[dim];
      if (cell < 0 || cell >= src || is_read[static_cast<std::size_t>(cell)]) continue;
      is_read[static_cast<std::size_t>(cell)] = true;
      ++reach.cells;
      reach.box = {std::min(reach.box.lo, cell), std::max(reach.box.hi, cell + 1)};
    }
  }
  return reach;
}

/// A src that is read through a window.
Argument through_window(Position position, const tensor::Window& window, const Layout& src, const Layout& dst) {
  tensor::Box box = tensor::whole(src.extents);
  std::int64_t cells = base::checked_mul(src.extents.n, src.extents.c);
  for (const tensor::Dim dim : tensor::spatial_dims) {
    const Reach reach = reach_of(window, dim, src.extents[dim], dst.extents[dim]);
    box.set(dim, reach.cells > 0 ? reach.box : tensor::Range{});
    cells = base::checked_mul(cells, reach.cells);
  }
  Argument argument{position, read, src};
  argument.touched = tensor::box_of(src, box);
  argument.items = cells;
  return argument;
}

/// The passes of convolutions and dense layers; `src` is the argument of forward.
template <class T>
List contraction(const T& task, Argument src, std::int64_t weight_count) {
  const Layout weights = items(weight_count), bias = items(task.dst.extents.c);
  const Access gradient = write_or_add(task.accumulate);
  switch (task.pass) {
    case Pass::forward: {
      namespace at = at::conv_forward;
      src.position = at::src;
      return {src,
              {at::weights, read, weights},
              {at::bias, read, bias, float32, required_if(task.bias)},
              {at::dst, write, task.dst}};
    }
    case Pass::backward_data: {
      namespace at = at::conv_backward_data;
      return {{at::diff_dst, read, task.dst}, {at::weights, read, weights}, {at::diff_src, write, task.src}};
    }
    case Pass::backward_weights: break;
  }
  namespace at = at::conv_backward_weights;
  src.position = at::src;
  return {src,
          {at::diff_dst, read, task.dst},
          {at::diff_weights, gradient, weights},
          {at::diff_bias, gradient, bias, float32, required_if(task.bias)}};
}

std::int64_t weight_count(const ConvTask& task) {
  return base::checked_product({tensor::taps(task.window), task.src.extents.c / task.groups, task.dst.extents.c});
}
std::int64_t prepared_count(const ConvTask& task) { return task.prepared_bytes / bytes_of(float32); }

List list_of(const ConvTask& task) {
  const std::int64_t weights = task.prepared_bytes > 0 ? prepared_count(task) : weight_count(task);
  return contraction(task, through_window({}, task.window, task.src, task.dst), weights);
}

List list_of(const PrepareWeightsTask& task) {
  return {{at::prepare_weights::weights, read, items(weight_count(task.conv))},
          {at::prepare_weights::prepared, write, items(prepared_count(task.conv))}};
}

List list_of(const DenseTask& task) {
  return contraction(task, {{}, read, task.src}, base::checked_mul(task.src.extents.c, task.dst.extents.c));
}

List list_of(const PoolTask& task) {
  const Layout taps = tensor::channels_last(task.dst.extents);
  const bool max = task.kind == PoolKind::max;
  const ItemType type = max && argmax_bytes(task.window) == 2 ? uint16 : uint8;
  if (task.pass == Pass::forward) {
    namespace at = at::pool_forward;
    return {through_window(at::src, task.window, task.src, task.dst),
            {at::dst, write, task.dst},
            {at::argmax, write, taps, type, max ? optional : null}};
  }
  namespace at = at::pool_backward;
  const bool activated = task.activation.kind != ActivationKind::identity;
  return {{at::diff_dst, read, task.dst},
          {at::argmax, read, taps, type, required_if(max)},
          {at::y, activated ? read : none, task.src, float32, activated ? required : optional},
          {at::diff_src, write_or_add(task.accumulate), task.src, float32, required, true}};
}

/// Means and variances: of every channel, or of every sample and group.
Layout statistics_of(const SampleGroups& groups, const Layout& x) {
  if (groups.groups == 0) return items(2 * x.extents.c);
  return items(base::checked_product({2, x.extents.n, groups.groups}));
}

List list_of(const NormSumsTask& task) {
  const Layout channels = items(task.x.extents.c), pairs = statistics_of(task.groups, task.x);
  const Presence affine = task.groups.groups > 0 ? optional : required;
  if (task.pass == Pass::forward) {
    namespace at = at::norm_sums_forward;
    return {{at::x, read, task.x}, {at::sums, write, pairs, float64}};
  }
  namespace at = at::norm_sums_backward;
  const Layout& y = given_or(task.y, task.x);
  const Access gradient = write_or_add(task.accumulate);
  return {{at::diff_y, read, given_or(task.diff_y, y)},
          {at::diff_y2, read, given_or(task.diff_y2, y), float32, optional},
          {at::x, read, task.x},
          {at::y, read, y, float32, optional},
          {at::gamma, read, channels, float32, affine},
          {at::beta, read, channels, float32, affine},
          {at::saved, read, pairs},
          {at::sums, write, pairs, float64},
          {at::diff_gamma, gradient, channels, float32, affine},
          {at::diff_beta, gradient, channels, float32, affine},
          {at::diff_residual, write, given_or(task.diff_residual, y), float32, optional, true}};
}

List list_of(const NormTask& task) {
  const Layout channels = items(task.x.extents.c), pairs = statistics_of(task.groups, task.x);
  const Layout& y = given_or(task.y, task.x);
  const bool grouped = task.groups.groups > 0;
  const Presence affine = grouped ? optional : required;
  if (task.pass == Pass::forward) {
    namespace at = at::norm_forward;
    const Access running = task.training ? update : read;
    const Presence runs = grouped ? null : required;
    const Presence batch = task.training ? required : optional;
    return {{at::x, read, task.x},
            {at::gamma, read, channels, float32, affine},
            {at::beta, read, channels, float32, affine},
            {at::running_mean, running, channels, float32, runs},
            {at::running_var, running, channels, float32, runs},
            {at::sums, task.training ? read : none, pairs, float64, batch},
            {at::saved, task.training ? write : none, pairs, float32, batch},
            {at::residual, read, given_or(task.residual_layout, y), float32, required_if(task.residual)},
            {at::y, write, y, float32, required, true}};
  }
  namespace at = at::norm_backward;
  return {{at::diff_y, read, given_or(task.diff_y, y)},
          {at::diff_y2, read, given_or(task.diff_y2, y), float32, optional},
          {at::x, read, task.x},
          {at::y, read, y, float32, optional},
          {at::gamma, read, channels, float32, affine},
          {at::beta, read, channels, float32, affine},
          {at::saved, read, pairs},
          {at::sums, read, pairs, float64},
          {at::diff_x, write, given_or(task.diff_x, task.x), float32, required, true}};
}

List list_of(const ActivationTask& task) {
  if (task.pass == Pass::forward) {
    namespace at = at::activation_forward;
    return {{at::src, read, task.src},
            {at::bias, read, items(task.src.extents.c), float32, optional},
            {at::dst, write, task.dst, float32, required, true}};
  }
  namespace at = at::activation_backward;
  return {{at::diff_dst, read, task.dst},
          {at::diff_dst2, read, given_or(task.second, task.dst), float32, optional},
          {at::y, read, given_or(task.y, task.dst)},
          {at::diff_src, write, task.src, float32, required, true}};
}

List list_of(const PixelNormTask& task) {
  const Layout channels = items(task.x.extents.c), saved = items(base::checked_mul(2, tensor::pixels(task.x.extents)));
  const Presence affine = required_if(task.affine);
  if (task.pass == Pass::forward) {
    namespace at = at::pixel_norm_forward;
    return {{at::x, read, task.x},
            {at::gamma, read, channels, float32, affine},
            {at::beta, read, channels, float32, affine},
            {at::saved, write, saved},
            {at::y, write, task.y}};
  }
  namespace at = at::pixel_norm_backward;
  const Access gradient = write_or_add(task.accumulate);
  return {{at::diff_y, read, task.y},
          {at::x, read, task.x},
          {at::gamma, read, channels, float32, affine},
          {at::saved, read, saved},
          {at::diff_x, write, given_or(task.diff_x, task.x), float32, required, true},
          {at::diff_gamma, gradient, channels, float32, affine},
          {at::diff_beta, gradient, channels, float32, affine}};
}

List list_of(const PReluTask& task) {
  const Layout weights = items(task.shared ? 1 : task.src.extents.c);
  if (task.pass == Pass::forward) {
    namespace at = at::prelu_forward;
    return {{at::src, read, task.src}, {at::weights, read, weights}, {at::dst, write, task.dst}};
  }
  namespace at = at::prelu_backward;
  return {{at::diff_dst, read, task.dst},
          {at::src, read, task.src},
          {at::weights, read, weights},
          {at::diff_src, write, given_or(task.diff_src, task.src), float32, required, true},
          {at::diff_weights, write_or_add(task.accumulate), weights}};
}

List list_of(const ProductTask& task) {
  namespace at = at::product;
  return {{at::a, read, task.a},
          {at::b, read, task.b},
          {at::bias, read, items(task.dst.extents.c), float32, optional},
          {at::dst, write, task.dst, float32, required, true}};
}

List list_of(const ProductSumsTask& task) {
  namespace at = at::product_sums;
  return {{at::a, read, task.a}, {at::b, read, task.b}, {at::dst, write_or_add(task.accumulate), task.dst}};
}

List list_of(const RemapTask& task) { return {{at::remap::src, read, task.src}, {at::remap::dst, write, task.dst}}; }

List list_of(const PeaksTask& task) {
  if (task.pass == Pass::forward) {
    namespace at = at::peaks_forward;
    return {{at::src, read, task.src}, {at::dst, write, task.dst}};
  }
  namespace at = at::peaks_backward;
  return {{at::diff_dst, read, given_or(task.diff_dst, task.dst)},
          {at::dst, read, task.dst},
          {at::diff_src, write, task.src}};
}

List list_of(const HighestPeakTask& task) {
  if (task.pass == Pass::forward) {
    namespace at = at::highest_peak_forward;
    return {{at::src, read, task.src}, {at::dst, write, task.dst}};
  }
  namespace at = at::highest_peak_backward;
  return {{at::diff_dst, read, task.dst},
          {at::src, read, task.src},
          {at::diff_src, write, given_or(task.diff_src, task.src)}};
}

List list_of(const SoftmaxTask& task) {
  if (task.pass == Pass::forward) {
    namespace at = at::softmax_forward;
    return {{at::src, read, task.src}, {at::dst, write, task.dst}};
  }
  namespace at = at::softmax_backward;
  return {{at::diff_dst, read, given_or(task.diff_dst, task.dst)},
          {at::y, read, task.dst},
          {at::diff_src, write, task.src}};
}

List list_of(const CopyTask& task) {
  return {{at::copy::src, read, task.src},
          {at::copy::dst, write_or_add(task.accumulate), task.dst, float32, required, true}};
}

/// Every piece is an entry of its own.
List list_of(const CopyPiecesTask& task) {
  List list;
  for (const CopyPiecesTask::Piece& piece : task.pieces) list.push_back({at::copy::src, read, piece.src});
  for (const CopyPiecesTask::Piece& piece : task.pieces)
    list.push_back({at::copy::dst, write_or_add(task.accumulate), piece.dst});
  return list;
}

List list_of(const FillTask& task) { return {{at::fill::dst, write, task.dst}}; }

List list_of(const AddTask& task) {
  return {
      {at::add::a, read, task.a}, {at::add::b, read, task.b}, {at::add::dst, write, task.dst, float32, required, true}};
}

List list_of(const DropoutTask& task) {
  return {{at::dropout::src, read, task.src}, {at::dropout::dst, write, task.dst, float32, required, true}};
}

List list_of(const BiasGradientTask& task) {
  return {{at::bias_gradient::diff_dst, read, task.dst},
          {at::bias_gradient::diff_bias, write_or_add(task.accumulate), items(task.dst.extents.c)}};
}

Argument target_of(Position position, const Loss& loss, const Layout& output) {
  if (!takes_labels(loss)) return {position, read, tensor::channels_last(output.extents)};
  return {position, read, items(tensor::pixels(output.extents)), int32};
}

List list_of(const LossSumsTask& task) {
  return {{at::loss_sums::output, read, task.output},
          target_of(at::loss_sums::target, task.loss, task.output),
          {at::loss_sums::sums, write, items(loss_sum_count(task.loss, task.output.extents.c)), float64}};
}

List list_of(const LossTask& task) {
  namespace at = at::loss;
  return {{at::output, read, task.output},
          target_of(at::target, task.loss, task.output),
          {at::sums, read, items(loss_sum_count(task.loss, task.output.extents.c)), float64},
          {at::diff_output, write, task.output, float32, optional, true},
          {at::loss, write, items(static_cast<std::int64_t>(task.loss.terms.size()) + 1), float64}};
}

List list_of(const UpdateTask& task) {
  namespace at = at::update;
  const Layout all = items(task.count);
  const int states = state_count(task.optimizer);
  List list{{at::weights, update, all},
            {at::gradient, read, all},
            {at::state0, update, all, float32, required_if(states > 0)},
            {at::state1, update, all, float32, required_if(states > 1)}};
  list.push_back(
      {at::arrived, read, items(base::checked_mul(task.arrived, task.count)), float32, required_if(task.arrived > 0)});
  for (std::size_t i = 0; i < static_cast<std::size_t>(task.kept); ++i)
    list.push_back({{at::kept + i, at::kept.name}, read, all});
  return list;
}

}  // namespace

std::vector<Argument> arguments(const Task& task) {
  List list = std::visit([](const auto& one) { return list_of(one); }, task);
  for (std::size_t i = 0; i < list.size(); ++i) {
    Argument& argument = list[i];
    assert(i == 0 || list[i - 1].position <= argument.position);
    if (argument.items > 0 || tensor::is_given(argument.touched)) continue;
    argument.touched = argument.layout;
    argument.items = tensor::volume(argument.layout.extents);
  }
  return list;
}

std::size_t argument_count(const Task& task) {
  const std::vector<Argument> list = arguments(task);
  return list.empty() ? 0 : list.back().position + 1;
}

std::int64_t bytes_of(ItemType type) {
  switch (type) {
    case uint8: return 1;
    case uint16: return 2;
    case float32:
    case int32: return 4;
    case float64: return 8;
  }
  return 0;
}

std::int64_t end_of(const Layout& layout) {
  std::int64_t last = layout.offset;
  for (const tensor::Dim dim : tensor::all_dims) {
    if (layout.extents[dim] <= 0) return 0;
    last = base::checked_add(last, base::checked_mul(layout.extents[dim] - 1, layout.strides[dim]));
  }
  return last + 1;
}

std::int64_t bytes_moved(const Argument& argument) {
  if (argument.access == none || argument.presence == null) return 0;
  const std::int64_t bytes = base::checked_mul(argument.items, bytes_of(argument.type));
  return argument.access == update ? base::checked_mul(2, bytes) : bytes;
}

std::int64_t bytes_moved(const Task& task) {
  std::int64_t bytes = 0;
  for (const Argument& argument : arguments(task)) bytes = base::checked_add(bytes, bytes_moved(argument));
  return bytes;
}

}  // namespace orthant::model
