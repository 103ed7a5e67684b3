#include "orthant/model/init.hpp"

#include "orthant/base/random.hpp"
#include "orthant/model/stored.hpp"
#include "orthant/model/traits.hpp"

#include <cassert>
#include <cmath>

namespace orthant::model {
namespace {

using Role = Parameter::Role;

/// The stream of one parameter.
std::uint64_t key_of(std::uint64_t seed, const std::string& name) {
  std::uint64_t key = base::mix(seed);
  for (const char c : name) key = base::keyed(key, static_cast<unsigned char>(c));
  return key;
}

struct Fans {
  double in = 1, out = 1;
};

/// PyTorch's: of a weight's extents, the second and the first, each times the taps.
Fans fans_of(const Parameter& weight) {
  double taps = 1;
  for (std::size_t i = 2; i < weight.extents.size(); ++i) taps *= static_cast<double>(weight.extents[i]);
  return {static_cast<double>(weight.extents[1]) * taps, static_cast<double>(weight.extents[0]) * taps};
}

void fill(std::span<float> values, double value) {
  for (float& item : values) item = static_cast<float>(value);
}

void fill_uniform(std::span<float> values, std::uint64_t key, double bound) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(bound * (2 * base::uniform(key, i) - 1));
}

void fill_normal(std::span<float> values, std::uint64_t key, double deviation) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(deviation * base::normal(key, i));
}

void fill_weight(std::span<float> values, std::uint64_t key, Init init, const Fans& fans) {
  switch (init) {
    case Init::torch: return fill_uniform(values, key, 1 / std::sqrt(fans.in));
    case Init::glorot_uniform: return fill_uniform(values, key, std::sqrt(6 / (fans.in + fans.out)));
    case Init::he_normal: return fill_normal(values, key, std::sqrt(2 / fans.out));
  }
}

/// What weights and biases per channel start with.
struct Starts {
  double weight = 1, bias = 0;
};

Starts starts_of(const Op& op) {
  if (const auto* affine = std::get_if<Affine>(&op))
    return {.weight = affine->weight_value, .bias = affine->bias_value};
  if (const auto* prelu = std::get_if<PRelu>(&op)) return {.weight = prelu->start};
  return {};
}

}  // namespace

void initialise(const Graph& graph, const Parameter& parameter, std::uint64_t seed, std::span<float> file_order) {
  assert(static_cast<std::int64_t>(file_order.size()) == count(parameter));
  if (const Stored* stored = stored_of(graph, parameter); stored != nullptr && stored->fill)
    return stored->fill(file_order);
  const OpTraits traits = traits_of(graph.nodes[parameter.node].op);
  const std::uint64_t key = key_of(seed, parameter.name);
  switch (parameter.role) {
    case Role::weight: return fill_weight(file_order, key, traits.contraction.value().init, fans_of(parameter));
    case Role::bias:
      if (const Contraction& layer = traits.contraction.value(); layer.init != Init::torch)
        return fill(file_order, layer.bias_value);
      return fill_uniform(file_order, key, 1 / std::sqrt(fans_of(node_parameters(graph, parameter.node).front()).in));
    case Role::norm_weight: return fill(file_order, starts_of(graph.nodes[parameter.node].op).weight);
    case Role::norm_bias: return fill(file_order, starts_of(graph.nodes[parameter.node].op).bias);
    case Role::running_var: return fill(file_order, 1);
    case Role::running_mean: return fill(file_order, 0);
  }
}

}  // namespace orthant::model
