#include "orthant/planner/local_work.hpp"

#include "orthant/base/one_of.hpp"
#include "orthant/tensor/window_boxes.hpp"

#include <utility>

namespace orthant::planner {
namespace {

using model::Pass;
using tensor::Box;

tensor::Layout dense(const Box& box) { return tensor::channels_last(tensor::extents_of(box)); }

/// The boxes a rank reads of a source lie side by side in c.
Box joined(const std::vector<Box>& boxes) {
  if (boxes.empty()) return {};
  Box all = boxes.front();
  for (std::size_t i = 1; i < boxes.size(); ++i) all.hi.c += boxes[i].hi.c - boxes[i].lo.c;
  return all;
}

/// One overload per op, so that a new one does not compile without its work.
class WorkOf {
 public:
  WorkOf(const LocalNode& local, const oracle::Prices& prices)
      : local_(local), prices_(prices), dst_(local.share.computed) {
    if (!local.share.sources.empty()) src_ = joined(local.share.sources.front());
  }

  LocalWork operator()(const model::Input&) const { return {}; }

  LocalWork operator()(const model::Conv& op) const {
    return conv({.window = tensor::local_window(op.window, src_, dst_),
                 .groups = local_groups(op.groups),
                 .bias = op.bias,
                 .src = dense(src_),
                 .dst = dense(dst_)},
                Pass::forward, Pass::backward_data);
  }
  LocalWork operator()(const model::ConvTranspose& op) const {
    return conv({.window = tensor::local_window(op.window, dst_, src_),
                 .groups = local_groups(op.groups),
                 .src = dense(dst_),
                 .dst = dense(src_)},
                Pass::backward_data, Pass::forward);
  }
  LocalWork operator()(const model::Dense& op) const {
    const auto seconds = [&](Pass pass) {
      return price(model::DenseTask{.pass = pass, .bias = op.bias, .src = dense(src_), .dst = dense(dst_)});
    };
    return {.forward = seconds(Pass::forward),
            .backward_data = local_.passes_back ? seconds(Pass::backward_data) : 0,
            .backward_weights = seconds(Pass::backward_weights)};
  }
  LocalWork operator()(const model::Pool& op) const {
    return pool({.kind = op.kind, .window = tensor::local_window(op.window, src_, dst_)});
  }
  LocalWork operator()(const model::GlobalAveragePool&) const {
    const tensor::Shape cells = tensor::extents_of(src_);
    return pool({.kind = model::PoolKind::average, .window = {.size = {cells.d, cells.h, cells.w}}});
  }
  LocalWork operator()(const model::GlobalMaxPool&) const {
    const auto seconds = [&](Pass pass) {
      return price(model::PeaksTask{.pass = pass, .src = dense(src_), .dst = dense(dst_)});
    };
    return {.forward = seconds(Pass::forward), .backward_data = local_.passes_back ? seconds(Pass::backward_data) : 0};
  }
  LocalWork operator()(const model::BatchNorm&) const { return norm(); }
  LocalWork operator()(const model::SampleNorm& op) const {
    if (op.kind != model::SampleNormKind::layer) return norm();
    const tensor::Layout x = dense(dst_);
    return {.forward = price(model::PixelNormTask{.x = x, .y = x}),
            .backward_data = price(model::PixelNormTask{.pass = Pass::backward_data, .x = x, .y = x})};
  }
  LocalWork operator()(const model::PRelu& op) const {
    const auto seconds = [&](Pass pass) {
      return price(model::PReluTask{.pass = pass, .shared = op.shared, .src = dense(dst_), .dst = dense(dst_)});
    };
    return {.forward = seconds(Pass::forward), .backward_data = seconds(Pass::backward_data)};
  }
  LocalWork operator()(const model::Affine&) const {
    return product(tensor::channels_last({1, dst_channels(), 1, 1, 1}));
  }
  LocalWork operator()(const model::Multiply&) const {
    return product(local_.share.sources[1].empty() ? dense(Box{}) : dense(local_.share.sources[1].front()));
  }
  template <base::OneOf<model::Resize, model::Slice, model::Pad> Op>
  LocalWork operator()(const Op&) const {
    return {.forward = remap(dense(src_), dense(dst_)), .backward_data = remap(dense(dst_), dense(src_))};
  }
  LocalWork operator()(const model::Activation& op) const {
    const auto seconds = [&](Pass pass) {
      return price(model::ActivationTask{.pass = pass, .activation = op, .src = dense(dst_), .dst = dense(dst_)});
    };
    if (!local_.fused) return {.forward = seconds(Pass::forward), .backward_data = seconds(Pass::backward_data)};
    const bool after_norm =
        model::has_statistics(model::traits_of(source().op)) || std::holds_alternative<model::Add>(source().op);
    return {.forward = 0, .backward_data = after_norm ? 0 : seconds(Pass::backward_data)};
  }
  LocalWork operator()(const model::Softmax&) const {
    const auto seconds = [&](Pass pass) {
      return price(model::SoftmaxTask{.pass = pass, .src = dense(dst_), .dst = dense(dst_)});
    };
    return {.forward = seconds(Pass::forward), .backward_data = seconds(Pass::backward_data)};
  }
  LocalWork operator()(const model::Add&) const {
    const tensor::Layout all = dense(dst_);
    return {.forward = local_.fused ? 0 : price(model::AddTask{.a = all, .b = all, .dst = all})};
  }
  template <base::OneOf<model::Scale, model::Dropout, model::ChannelShuffle, model::PixelShuffle, model::Concat,
                        model::Flatten>
                Op>
  LocalWork operator()(const Op&) const {
    const double seconds = price(model::CopyTask{.src = dense(dst_), .dst = dense(dst_)});
    return {.forward = seconds, .backward_data = seconds};
  }

 private:
  [[nodiscard]] const model::Node& node() const { return local_.graph.nodes[static_cast<std::size_t>(local_.node)]; }
  [[nodiscard]] const model::Node& source() const {
    return local_.graph.nodes[static_cast<std::size_t>(node().srcs.front())];
  }
  [[nodiscard]] LocalWork norm() const {
    const tensor::Layout x = dense(dst_);
    return {.forward = price(model::NormSumsTask{.x = x}) + price(model::NormTask{.statistics_count = 1, .x = x}),
            .backward_data = price(model::NormSumsTask{.pass = Pass::backward_data, .x = x}) +
                             price(model::NormTask{.pass = Pass::backward_data, .statistics_count = 1, .x = x})};
  }
  [[nodiscard]] std::int64_t dst_channels() const { return dst_.hi.c - dst_.lo.c; }
  /// What its lists of cells are does not matter: it is bound by memory.
  [[nodiscard]] double remap(const tensor::Layout& src, const tensor::Layout& dst) const {
    model::RemapTask task;
    task.src = src;
    task.dst = dst;
    return price(model::Task{std::move(task)});
  }
  /// Backward is the same product, and the sums for the gradient of the second factor.
  [[nodiscard]] LocalWork product(const tensor::Layout& second) const {
    const tensor::Layout all = dense(dst_);
    const double once = price(model::ProductTask{.a = all, .b = second, .dst = all});
    return {.forward = once, .backward_data = once + price(model::ProductSumsTask{.a = all, .b = all, .dst = second})};
  }
  [[nodiscard]] double price(const model::Task& task) const { return prices_.of(task).seconds; }
  [[nodiscard]] double price(const model::ConvTask& task) const {
    const oracle::PricedAlgorithm best = prices_.fastest(task);
    return best.algorithm == model::Algorithm::automatic ? prices_.of(task).seconds : best.price.seconds;
  }
  [[nodiscard]] std::int64_t local_groups(std::int64_t groups) const {
    return groups == 1 ? 1 : std::max<std::int64_t>(1, (dst_.hi.c - dst_.lo.c) / (node().shape.c / groups));
  }

  /// Forward and backward of a transposed convolution run each other's kernels.
  [[nodiscard]] LocalWork conv(model::ConvTask task, Pass forward, Pass backward) const {
    const auto seconds = [&](Pass pass) {
      task.pass = pass;
      return price(task);
    };
    return {.forward = seconds(forward),
            .backward_data = local_.passes_back ? seconds(backward) : 0,
            .backward_weights = seconds(Pass::backward_weights)};
  }

  [[nodiscard]] LocalWork pool(model::PoolTask task) const {
    task.src = dense(src_);
    task.dst = dense(dst_);
    LocalWork work{.forward = price(task)};
    task.pass = Pass::backward_data;
    if (local_.passes_back) work.backward_data = price(task);
    return work;
  }

  const LocalNode& local_;
  const oracle::Prices& prices_;
  Box src_{}, dst_{};
};

}  // namespace

LocalWork local_work(const LocalNode& local, const oracle::Prices& prices) {
  if (tensor::is_empty(local.share.computed)) return {};
  return std::visit(WorkOf(local, prices), local.graph.nodes[static_cast<std::size_t>(local.node)].op);
}

}  // namespace orthant::planner
