#include "tests/support/compare.hpp"

#include "orthant/base/one_of.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace orthant::test {
namespace {

using model::ActivationKind;
using model::Pass;

bool is_power_of_two(std::int64_t count) { return std::has_single_bit(static_cast<std::uint64_t>(count)); }

bool is_power_of_two(double factor) {
  int exponent = 0;
  return std::abs(std::frexp(factor, &exponent)) == 0.5;
}

bool is_exact(const model::Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::identity:
    case ActivationKind::relu6:
    case ActivationKind::relu: return true;
    case ActivationKind::leaky_relu: return is_power_of_two(activation.slope);
    default: return false;
  }
}

/// How many items are summed into one result.
struct Summands {
  std::int64_t operator()(const model::ConvTask& task) const {
    if (task.pass == Pass::forward) return tensor::taps(task.window) * task.src.extents.c / task.groups;
    if (task.pass == Pass::backward_data) return tensor::taps(task.window) * task.dst.extents.c / task.groups;
    return tensor::pixels(task.dst.extents);
  }
  std::int64_t operator()(const model::DenseTask& task) const {
    if (task.pass == Pass::forward) return task.src.extents.c;
    return task.pass == Pass::backward_data ? task.dst.extents.c : task.dst.extents.n;
  }
  std::int64_t operator()(const model::PoolTask& task) const { return tensor::taps(task.window); }
  std::int64_t operator()(const model::NormTask& task) const { return tensor::pixels(task.x.extents); }
  /// Of a channel those of all samples, of a group those of its channels in one sample.
  std::int64_t operator()(const model::NormSumsTask& task) const {
    const tensor::Shape& x = task.x.extents;
    const std::int64_t of_group = x.d * x.h * x.w * std::min(x.c, task.groups.channels);
    return std::max(tensor::pixels(x), task.groups.groups > 0 ? of_group : 0);
  }
  /// Of few channels nearly everything cancels: what is left of one is nothing but rounding.
  std::int64_t operator()(const model::PixelNormTask& task) const {
    constexpr std::int64_t least = 64;
    return std::max({least, task.x.extents.c, task.pass == Pass::forward ? 1 : tensor::pixels(task.x.extents)});
  }
  std::int64_t operator()(const model::PReluTask& task) const {
    return task.pass == Pass::forward ? 1 : tensor::volume(task.src.extents);
  }
  std::int64_t operator()(const model::ProductSumsTask& task) const { return tensor::volume(task.a.extents); }
  std::int64_t operator()(const model::RemapTask& task) const {
    std::int64_t terms = 1;
    for (const model::RemapTask::Axis& axis : task.axes)
      terms *= static_cast<std::int64_t>(axis.cell.size()) /
                   std::max<std::int64_t>(1, static_cast<std::int64_t>(axis.begin.size()) - 1) +
               1;
    return terms;
  }
  std::int64_t operator()(const model::SoftmaxTask& task) const { return task.src.extents.c; }
  std::int64_t operator()(const model::BiasGradientTask& task) const { return tensor::pixels(task.dst.extents); }
  std::int64_t operator()(const model::LossSumsTask& task) const { return tensor::volume(task.output.extents); }
  std::int64_t operator()(const model::LossTask& task) const { return tensor::volume(task.output.extents); }
  template <base::OneOf<model::PrepareWeightsTask, model::ActivationTask, model::ProductTask, model::CopyTask,
                        model::CopyPiecesTask, model::FillTask, model::AddTask, model::DropoutTask, model::UpdateTask,
                        model::PeaksTask, model::HighestPeakTask>
                Other>
  std::int64_t operator()(const Other&) const {
    return 1;
  }
};

struct Exactness {
  bool operator()(const model::ConvTask& task) const { return task.pass != Pass::forward || is_exact(task.activation); }
  bool operator()(const model::DenseTask& task) const {
    return task.pass != Pass::forward || is_exact(task.activation);
  }
  bool operator()(const model::PoolTask& task) const {
    const bool exact_mean = task.count_include_pad && is_power_of_two(tensor::taps(task.window));
    return (task.kind == model::PoolKind::max || exact_mean) && is_exact(task.activation);
  }
  bool operator()(const model::NormSumsTask& task) const { return is_exact(task.activation); }
  bool operator()(const model::LossSumsTask& task) const { return !model::takes_labels(task.loss); }
  bool operator()(const model::FillTask&) const { return true; }
  bool operator()(const model::CopyPiecesTask&) const { return true; }
  bool operator()(const model::ActivationTask& task) const { return is_exact(task.activation); }
  bool operator()(const model::CopyTask& task) const { return is_power_of_two(task.factor); }
  bool operator()(const model::PeaksTask&) const { return true; }
  bool operator()(const model::HighestPeakTask&) const { return true; }
  bool operator()(const model::AddTask&) const { return true; }
  bool operator()(const model::PReluTask&) const { return true; }
  bool operator()(const model::ProductTask&) const { return true; }
  bool operator()(const model::ProductSumsTask&) const { return true; }
  bool operator()(const model::RemapTask& task) const {
    return std::all_of(task.axes.begin(), task.axes.end(), [](const model::RemapTask::Axis& axis) {
      return std::all_of(axis.weight.begin(), axis.weight.end(), [](float weight) {
        return static_cast<double>(weight) * 8 == std::floor(static_cast<double>(weight) * 8);
      });
    });
  }
  bool operator()(const model::DropoutTask& task) const { return is_power_of_two(1 - task.rate); }
  bool operator()(const model::BiasGradientTask&) const { return true; }
  template <base::OneOf<model::PrepareWeightsTask, model::NormTask, model::PixelNormTask, model::SoftmaxTask,
                        model::LossTask, model::UpdateTask>
                Other>
  bool operator()(const Other&) const {
    return false;
  }
};

}  // namespace

double relative_error(std::span<const double> actual, std::span<const double> expected, double floor) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  if (!std::isfinite(error) || !std::isfinite(norm)) return std::numeric_limits<double>::infinity();
  return error == 0 ? 0 : std::sqrt(error) / std::max(std::sqrt(norm), floor);
}

double tolerance(const model::Task& task) {
  constexpr double k = 4;  // one rounding per product and per sum, and vectorised exp, tanh, sqrt of a few ulps
  const auto summands = static_cast<double>(std::visit(Summands{}, task));
  return k * static_cast<double>(std::numeric_limits<float>::epsilon()) * std::sqrt(std::max(summands, 1.0));
}

bool is_exact_on_integers(const model::Task& task) { return std::visit(Exactness{}, task); }

}  // namespace orthant::test
