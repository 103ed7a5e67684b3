#include "orthant/model/onnx/patterns.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::model::onnx {
namespace {

bool near(double value, double wanted) { return std::abs(value - wanted) < 1e-5 * std::abs(wanted); }

}  // namespace

/// What 1 or 0 per sample is made of.
bool Patterns::is_random(int item) const {
  for (int depth = 0; depth < 6; ++depth) {
    if (in.symbol(item, "random") != nullptr) return true;
    const bool passes =
        in.symbol(item, "floor") != nullptr || in.symbol(item, "add") != nullptr || in.as<Scale>(item) != nullptr;
    if (!passes) return false;
    item = in.src(item);
  }
  return false;
}

/// factor * x * gate, where both have no factor of their own.
std::optional<int> Patterns::gated(int x, int gate, double factor) const {
  const auto* activation = in.as<Activation>(gate);
  if (activation != nullptr && in.src(gate) == x) {
    if (activation->kind == ActivationKind::sigmoid) return in.scale(in.activate(x, ActivationKind::silu), factor);
    if (activation->kind == ActivationKind::hard_sigmoid)
      return in.scale(in.activate(x, ActivationKind::hard_swish), factor);
  }
  const Symbol* one_more = in.symbol(gate, "add");
  if (one_more == nullptr || one_more->number != 1 || in.symbol(in.src(gate), "erf") == nullptr) return std::nullopt;
  const int inner = in.src(in.src(gate));
  const auto* shrunk = in.as<Scale>(inner);
  if (shrunk == nullptr || !near(shrunk->factor, std::sqrt(0.5)) || in.src(inner) != x) return std::nullopt;
  return in.scale(in.activate(x, ActivationKind::gelu), 2 * factor);
}

std::optional<int> Patterns::product(int a, int b) const {
  double factor = 1;
  const auto stripped = [&](int item) {
    const auto* scale = in.as<Scale>(item);
    if (scale == nullptr) return item;
    factor *= scale->factor;
    return in.src(item);
  };
  const int x = stripped(a);
  const int y = stripped(b);
  for (const auto& [data, gate] : {std::pair(x, y), std::pair(y, x)}) {
    if (const std::optional<int> found = gated(data, gate, factor)) return found;
    if (is_random(gate)) {
      const std::string remark = "drop path is left out: its samples are kept, as in evaluation";
      if (std::find(in.remarks_.begin(), in.remarks_.end(), remark) == in.remarks_.end()) in.remarks_.push_back(remark);
      return data;
    }
  }
  for (const auto& [data, gate] : {std::pair(a, b), std::pair(b, a)}) {
    if (in.symbol(gate, "reciprocal") == nullptr) continue;
    if (const std::optional<int> found = normed(data, in.src(gate))) return found;
  }
  return std::nullopt;
}

std::optional<int> Patterns::quotient(int a, int b) const { return normed(a, b); }

/// The axes that an item is the mean over; none if it is no mean.
std::vector<tensor::Dim> Patterns::mean_axes(int item) const {
  if (in.as<GlobalAveragePool>(item) != nullptr) return {tensor::spatial_dims.begin(), tensor::spatial_dims.end()};
  const Symbol* mean = in.symbol(item, "mean");
  return mean == nullptr ? std::vector<tensor::Dim>() : mean->axes;
}

/// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon).
std::optional<int> Patterns::normed(int centred, int deviation) const {
  if (in.symbol(centred, "sub") == nullptr || in.symbol(deviation, "sqrt") == nullptr) return std::nullopt;
  const int sum = in.src(deviation);
  const Symbol* epsilon = in.symbol(sum, "add");
  if (epsilon == nullptr) return std::nullopt;
  const int x = in.src(centred);
  const int mean = in.src(centred, 1);
  const int variance = in.src(sum);
  const std::vector<tensor::Dim> axes = mean_axes(mean);
  if (axes.empty() || axes != mean_axes(variance) || in.src(mean) != x) return std::nullopt;
  const int square = in.src(variance);
  if (in.as<Multiply>(square) == nullptr || in.src(square) != centred || in.src(square, 1) != centred)
    return std::nullopt;
  const bool channels = std::find(axes.begin(), axes.end(), tensor::Dim::c) != axes.end();
  SampleNorm norm{.kind = SampleNormKind::layer, .groups = 1, .epsilon = epsilon->number, .affine = false};
  if (axes.size() > 1 || !channels) norm.kind = channels ? SampleNormKind::group : SampleNormKind::instance;
  return in.put(Op(norm), {x});
}

}  // namespace orthant::model::onnx
