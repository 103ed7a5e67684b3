#include "tests/support/arguments.hpp"

#include <algorithm>

#include "tests/support/task_layouts.hpp"

namespace orthant::test {
namespace {

using model::Pass;
using tensor::channels_last;
using tensor::Layout;
using enum Access;

/// `count` items side by side, as parameters are.
Layout list(std::int64_t count) { return channels_last({.n = 1, .c = count}); }

/// src, weights, bias, dst of a bilinear task in the order of its pass.
template <class T>
std::vector<Argument> bilinear(const T& task, std::int64_t weight_count) {
  const Layout weights = list(weight_count), bias = list(task.dst.extents.c);
  switch (task.pass) {
    case Pass::forward:
      return {{"src", read, task.src}, {"weights", read, weights}, {"bias", read, bias}, {"dst", write, task.dst}};
    case Pass::backward_data:
      return {{"diff_dst", read, task.dst}, {"weights", read, weights}, {"diff_src", write, task.src}};
    case Pass::backward_weights: break;
  }
  const Access gradient = task.accumulate ? update : write;
  return {{"src", read, task.src},
          {"diff_dst", read, task.dst},
          {"diff_weights", gradient, weights},
          {"diff_bias", gradient, bias}};
}

std::int64_t weights_of(const model::ConvTask& task) {
  return tensor::taps(task.window) * task.src.extents.c * task.dst.extents.c / task.groups;
}

std::vector<Argument> list_arguments(const model::ConvTask& task) {
  return bilinear(task, task.prepared_bytes == 0 ? weights_of(task) : task.prepared_bytes / 4);
}

std::vector<Argument> list_arguments(const model::PrepareWeightsTask& task) {
  return {{"weights", read, list(weights_of(task.conv))}, {"prepared", write, list(task.conv.prepared_bytes / 4)}};
}

std::vector<Argument> list_arguments(const model::DenseTask& task) {
  return bilinear(task, task.src.extents.c * task.dst.extents.c);
}

std::vector<Argument> list_arguments(const model::PoolTask& task) {
  const Layout argmax = channels_last(task.dst.extents);
  const ItemType type = argmax_type(task.window);
  if (task.pass == Pass::forward) {
    return {{"src", read, task.src}, {"dst", write, task.dst}, {"argmax", write, argmax, type, Content::taps}};
  }
  return {{"diff_dst", read, task.dst},
          {"argmax", read, argmax, type, Content::taps},
          {"y", read, task.src},
          {"diff_src", task.accumulate ? update : write, task.src}};
}

/// Two numbers per channel, or per sample and group.
template <class Task>
Layout statistics(const Task& task) {
  return list(2 * (task.groups.groups > 0 ? task.groups.groups * task.x.extents.n : task.x.extents.c));
}

std::vector<Argument> list_arguments(const model::NormSumsTask& task) {
  const Layout channels = list(task.x.extents.c), pairs = statistics(task);
  if (task.pass == Pass::forward) return {{"x", read, task.x}, {"sums", write, pairs, ItemType::float64}};
  const Access gradient = task.accumulate ? update : write;
  return {{"diff_y", read, diff_y_layout(task)},
          {"diff_y2", read, diff_y2_layout(task)},
          {"x", read, task.x},
          {"y", read, y_layout(task)},
          {"gamma", read, channels},
          {"beta", read, channels},
          {"saved", read, pairs, ItemType::float32, Content::positive},
          {"sums", write, pairs, ItemType::float64},
          {"diff_gamma", gradient, channels},
          {"diff_beta", gradient, channels},
          {"diff_residual", write, diff_residual_layout(task)}};
}

std::vector<Argument> list_arguments(const model::NormTask& task) {
  const Layout channels = list(task.x.extents.c), pairs = statistics(task);
  const Access statistics = task.training ? update : read;
  if (task.pass == Pass::forward) {
    return {{"x", read, task.x},
            {"gamma", read, channels},
            {"beta", read, channels},
            {"running_mean", statistics, channels},
            {"running_var", statistics, channels, ItemType::float32, Content::positive},
            {"sums", read, pairs, ItemType::float64, Content::moments},
            {"saved", task.training ? write : read, pairs},
            {"residual", read, residual_layout(task)},
            {"y", write, task.y}};
  }
  return {{"diff_y", read, diff_y_layout(task)},
          {"diff_y2", read, diff_y2_layout(task)},
          {"x", read, task.x},
          {"y", read, y_layout(task)},
          {"gamma", read, channels},
          {"beta", read, channels},
          {"saved", read, pairs, ItemType::float32, Content::positive},
          {"sums", read, pairs, ItemType::float64},
          {"diff_x", write, diff_x_layout(task)}};
}

std::vector<Argument> list_arguments(const model::ActivationTask& task) {
  if (task.pass == Pass::forward) {
    return {{"src", read, task.src}, {"bias", read, list(task.src.extents.c)}, {"dst", write, task.dst}};
  }
  return {{"diff_dst", read, task.dst},
          {"diff_dst2", read, task.second},
          {"y", read, y_layout(task)},
          {"diff_src", write, task.src}};
}

std::vector<Argument> list_arguments(const model::PixelNormTask& task) {
  const Layout channels = list(task.x.extents.c), saved = list(2 * tensor::pixels(task.x.extents));
  if (task.pass == Pass::forward) {
    return {{"x", read, task.x},
            {"gamma", read, channels},
            {"beta", read, channels},
            {"saved", write, saved},
            {"y", write, task.y}};
  }
  const Access gradient = task.accumulate ? update : write;
  return {{"diff_y", read, task.y},
          {"x", read, task.x},
          {"gamma", read, channels},
          {"saved", read, saved, ItemType::float32, Content::positive},
          {"diff_x", write, given_or(task.diff_x, task.x)},
          {"diff_gamma", gradient, channels},
          {"diff_beta", gradient, channels}};
}

std::vector<Argument> list_arguments(const model::PReluTask& task) {
  const Layout weights = list(task.shared ? 1 : task.src.extents.c);
  if (task.pass == Pass::forward)
    return {{"src", read, task.src}, {"weights", read, weights}, {"dst", write, task.dst}};
  return {{"diff_dst", read, task.dst},
          {"src", read, task.src},
          {"weights", read, weights},
          {"diff_src", write, given_or(task.diff_src, task.src)},
          {"diff_weights", task.accumulate ? update : write, weights}};
}

std::vector<Argument> list_arguments(const model::ProductTask& task) {
  return {{"a", read, task.a}, {"b", read, task.b}, {"bias", read, list(task.dst.extents.c)}, {"dst", write, task.dst}};
}

std::vector<Argument> list_arguments(const model::ProductSumsTask& task) {
  return {{"a", read, task.a}, {"b", read, task.b}, {"dst", task.accumulate ? update : write, task.dst}};
}

std::vector<Argument> list_arguments(const model::RemapTask& task) {
  return {{"src", read, task.src}, {"dst", write, task.dst}};
}

std::vector<Argument> list_arguments(const model::PeaksTask& task) {
  if (task.pass == Pass::forward) return {{"src", read, task.src}, {"dst", write, task.dst}};
  return {{"diff_dst", read, given_or(task.diff_dst, task.dst)},
          {"dst", read, task.dst, ItemType::float32, Content::peaks},
          {"diff_src", write, task.src}};
}

std::vector<Argument> list_arguments(const model::HighestPeakTask& task) {
  const Argument src{"src", read, task.src, ItemType::float32, Content::peaks};
  if (task.pass == Pass::forward) return {src, {"dst", write, task.dst}};
  return {{"diff_dst", read, task.dst}, src, {"diff_src", write, given_or(task.diff_src, task.src)}};
}

std::vector<Argument> list_arguments(const model::SoftmaxTask& task) {
  if (task.pass == Pass::forward) return {{"src", read, task.src}, {"dst", write, task.dst}};
  return {{"diff_dst", read, diff_dst_layout(task)}, {"y", read, task.dst}, {"diff_src", write, task.src}};
}

std::vector<Argument> list_arguments(const model::CopyTask& task) {
  return {{"src", read, task.src}, {"dst", task.accumulate ? update : write, task.dst}};
}

/// All memory up to the last piece: what lies between pieces must stay as it is.
std::vector<Argument> list_arguments(const model::CopyPiecesTask& task) {
  std::int64_t src = 0;
  std::int64_t dst = 0;
  for (const auto& piece : task.pieces) {
    src = std::max(src, end_of(piece.src));
    dst = std::max(dst, end_of(piece.dst));
  }
  return {{"src", read, list(src)}, {"dst", update, list(dst)}};
}

std::vector<Argument> list_arguments(const model::FillTask& task) { return {{"dst", write, task.dst}}; }

std::vector<Argument> list_arguments(const model::AddTask& task) {
  return {{"a", read, task.a}, {"b", read, task.b}, {"dst", write, task.dst}};
}

std::vector<Argument> list_arguments(const model::DropoutTask& task) {
  return {{"src", read, task.src}, {"dst", write, task.dst}};
}

std::vector<Argument> list_arguments(const model::BiasGradientTask& task) {
  return {{"diff_dst", read, task.dst}, {"diff_bias", task.accumulate ? update : write, list(task.dst.extents.c)}};
}

Argument target_of(const model::Loss& loss, const Layout& output) {
  if (!model::takes_labels(loss)) return {"target", read, channels_last(output.extents)};
  return {"target", read, list(tensor::pixels(output.extents)), ItemType::int32, Content::labels};
}

std::vector<Argument> list_arguments(const model::LossSumsTask& task) {
  const Layout sums = list(model::loss_sum_count(task.loss, task.output.extents.c));
  return {{"output", read, task.output}, target_of(task.loss, task.output), {"sums", write, sums, ItemType::float64}};
}

std::vector<Argument> list_arguments(const model::LossTask& task) {
  const Layout sums = list(model::loss_sum_count(task.loss, task.output.extents.c));
  const Layout losses = list(static_cast<std::int64_t>(task.loss.terms.size()) + 1);
  return {{"output", read, task.output},
          target_of(task.loss, task.output),
          {"sums", read, sums, ItemType::float64, Content::positive},
          {"diff_output", write, task.output},
          {"loss", write, losses, ItemType::float64}};
}

std::vector<Argument> list_arguments(const model::UpdateTask& task) {
  const Layout items = list(task.count);
  std::vector<Argument> all{{"weights", update, items},
                            {"gradient", read, items},
                            {"state0", update, items},
                            {"state1", update, items, ItemType::float32, Content::positive}};
  all.push_back({"arrived", read, list(task.arrived * task.count)});
  for (int i = 0; i < task.kept; ++i) all.push_back({"kept", read, items});
  return all;
}

}  // namespace

std::vector<Argument> arguments_of(const model::Task& task) {
  return std::visit([](const auto& one) { return list_arguments(one); }, task);
}

std::int64_t bytes_of(ItemType type) {
  switch (type) {
    case ItemType::uint8: return 1;
    case ItemType::uint16: return 2;
    case ItemType::float64: return 8;
    default: return 4;
  }
}

ItemType argmax_type(const tensor::Window& window) {
  return model::argmax_bytes(window) == 1 ? ItemType::uint8 : ItemType::uint16;
}

std::int64_t end_of(const Layout& layout) {
  std::int64_t last = layout.offset;
  for (const tensor::Dim dim : tensor::all_dims) {
    if (layout.extents[dim] == 0) return 0;
    last += (layout.extents[dim] - 1) * layout.strides[dim];
  }
  return last + 1;
}

}  // namespace orthant::test
