#include "orthant/model/traits.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/one_of.hpp"
#include "orthant/tensor/window_boxes.hpp"

#include <cstdlib>

namespace orthant::model {
namespace {

/// One overload per op, so that a new one does not compile without its traits.
struct Traits {
  OpTraits operator()(const Input&) const { return {.reads = NoSource{}}; }
  OpTraits operator()(const Conv& op) const {
    return {.reads = UnderWindow{op.window}, .contraction = contraction(op, op.groups), .takes_activation = true};
  }
  OpTraits operator()(const ConvTranspose& op) const {
    return {.reads = UnderTransposedWindow{op.window, op.output_padding},
            .contraction = contraction(op, op.groups),
            .takes_activation = true};
  }
  OpTraits operator()(const Dense& op) const {
    return {.reads = SameCells{}, .contraction = contraction(op, 1), .takes_activation = true};
  }
  OpTraits operator()(const Pool& op) const { return {.reads = UnderWindow{op.window}}; }
  OpTraits operator()(const GlobalAveragePool&) const { return {.reads = WholeSpace{}}; }
  OpTraits operator()(const GlobalMaxPool&) const { return {.reads = WholeSpace{}}; }
  OpTraits operator()(const BatchNorm&) const {
    return {.reads = SameCells{}, .batch_statistics = true, .takes_residual = true, .takes_activation = true};
  }
  OpTraits operator()(const SampleNorm& op) const {
    if (op.kind == SampleNormKind::layer) return {.reads = SameCells{}, .needs_all_channels = true};
    return {.reads = SameCells{},
            .sample_groups = op.kind == SampleNormKind::instance ? 0 : op.groups,
            .takes_residual = true,
            .takes_activation = true};
  }
  OpTraits operator()(const Activation& op) const {
    return {.reads = SameCells{},
            .backward_reads_dst = op.kind != ActivationKind::identity && !derivative_reads_src(op.kind)};
  }
  OpTraits operator()(const PRelu& op) const { return {.reads = SameCells{}, .whole_parameters = op.shared}; }
  OpTraits operator()(const Affine&) const { return {.reads = SameCells{}}; }
  OpTraits operator()(const Softmax&) const {
    return {.reads = SameCells{}, .needs_all_channels = true, .backward_reads_dst = true};
  }
  OpTraits operator()(const Scale&) const { return {.reads = SameCells{}}; }
  OpTraits operator()(const Dropout&) const { return {.reads = SameCells{}}; }
  OpTraits operator()(const Add&) const { return {.reads = SameCells{}, .many_sources = true}; }
  OpTraits operator()(const Multiply&) const { return {.reads = BroadcastCells{}, .many_sources = true}; }
  OpTraits operator()(const Resize& op) const { return {.reads = along_axes(op)}; }
  OpTraits operator()(const Slice& op) const {
    AlongAxes map{.first_channel = op.first_channel};
    for (const tensor::Dim dim : tensor::spatial_dims) rule(map, dim) = {.first = op.first[dim], .step = op.step[dim]};
    return {.reads = map};
  }
  OpTraits operator()(const Pad& op) const {
    using Kind = tensor::AxisRule::Kind;
    AlongAxes map;
    for (const tensor::Dim dim : tensor::spatial_dims) {
      const Kind kind = op.mode == PadMode::zeros     ? Kind::shift
                        : op.mode == PadMode::reflect ? Kind::reflect
                                                      : Kind::edge;
      rule(map, dim) = {.kind = kind, .first = -op.lo[dim]};
    }
    return {.reads = map};
  }
  OpTraits operator()(const ChannelShuffle& op) const { return {.reads = ShuffledChannels{op.groups}}; }
  OpTraits operator()(const PixelShuffle& op) const { return {.reads = CellBlocks{op.factor, op.to_channels}}; }
  OpTraits operator()(const Concat&) const { return {.reads = ConcatenatedChannels{}, .many_sources = true}; }
  OpTraits operator()(const Flatten&) const { return {.reads = FlattenedChannels{}}; }

  static tensor::AxisRule& rule(AlongAxes& map, tensor::Dim dim) {
    return map.rules[static_cast<std::size_t>(dim) - static_cast<std::size_t>(tensor::Dim::d)];
  }
  static AlongAxes along_axes(const Resize& op) {
    using Kind = tensor::AxisRule::Kind;
    AlongAxes map;
    for (std::size_t i = 0; i < map.rules.size(); ++i) {
      map.rules[i].kind = op.mode == ResizeMode::nearest ? Kind::nearest
                          : op.align_corners             ? Kind::corners
                                                         : Kind::linear;
      if (op.factor[i] > 0) map.rules[i].scale = 1 / op.factor[i];
    }
    return map;
  }
  template <class Layer>
  static Contraction contraction(const Layer& op, std::int64_t groups) {
    return {.groups = groups, .bias = op.bias, .init = op.init, .bias_value = op.bias_value};
  }
};

struct WindowOf {
  const tensor::Window* operator()(const UnderWindow& map) const { return &map.window; }
  const tensor::Window* operator()(const UnderTransposedWindow& map) const { return &map.window; }
  const tensor::Window* operator()(const NoSource&) const { return nullptr; }
  const tensor::Window* operator()(const SameCells&) const { return nullptr; }
  const tensor::Window* operator()(const WholeSpace&) const { return nullptr; }
  const tensor::Window* operator()(const BroadcastCells&) const { return nullptr; }
  const tensor::Window* operator()(const AlongAxes&) const { return nullptr; }
  const tensor::Window* operator()(const ShuffledChannels&) const { return nullptr; }
  const tensor::Window* operator()(const CellBlocks&) const { return nullptr; }
  const tensor::Window* operator()(const ConcatenatedChannels&) const { return nullptr; }
  const tensor::Window* operator()(const FlattenedChannels&) const { return nullptr; }
};

struct IsTransposed {
  bool operator()(const UnderTransposedWindow&) const { return true; }
  template <base::OneOf<NoSource, SameCells, UnderWindow, WholeSpace, BroadcastCells, AlongAxes, ShuffledChannels,
                        CellBlocks, ConcatenatedChannels, FlattenedChannels>
                Other>
  bool operator()(const Other&) const {
    return false;
  }
};

struct FlattensSpace {
  bool operator()(const FlattenedChannels&) const { return true; }
  template <base::OneOf<NoSource, SameCells, UnderWindow, UnderTransposedWindow, WholeSpace, BroadcastCells, AlongAxes,
                        ShuffledChannels, CellBlocks, ConcatenatedChannels>
                Other>
  bool operator()(const Other&) const {
    return false;
  }
};

struct HaloWidth {
  tensor::Dim dim;

  std::int64_t operator()(const UnderWindow& map) const { return tensor::halo_read(map.window, dim); }
  std::int64_t operator()(const UnderTransposedWindow& map) const { return tensor::halo_reading(map.window, dim); }
  std::int64_t operator()(const NoSource&) const { return 0; }
  std::int64_t operator()(const SameCells&) const { return 0; }
  std::int64_t operator()(const WholeSpace&) const { return 0; }
  std::int64_t operator()(const BroadcastCells&) const { return 0; }
  std::int64_t operator()(const AlongAxes& map) const {
    using Kind = tensor::AxisRule::Kind;
    const tensor::AxisRule& rule = rule_of(map, dim);
    if (rule.kind == Kind::linear || rule.kind == Kind::corners) return 1;
    return rule.kind == Kind::nearest ? 0 : std::abs(rule.first);
  }
  std::int64_t operator()(const ShuffledChannels&) const { return 0; }
  /// Where a cut is not at the edge of a block.
  std::int64_t operator()(const CellBlocks& map) const { return map.to_channels ? map.factor[dim] - 1 : 1; }
  /// Everything is gathered, so blocks may be as thin as they like.
  std::int64_t operator()(const ConcatenatedChannels&) const { return 0; }
  std::int64_t operator()(const FlattenedChannels&) const { return 0; }
};

}  // namespace

OpTraits traits_of(const Op& op) { return std::visit(Traits{}, op); }

const tensor::AxisRule& rule_of(const AlongAxes& map, tensor::Dim dim) {
  return map.rules[static_cast<std::size_t>(dim) - static_cast<std::size_t>(tensor::Dim::d)];
}

const tensor::Window* window_of(const IndexMap& map) { return std::visit(WindowOf{}, map); }

std::int64_t count(const CellBlocks& map) { return base::checked_product({map.factor.d, map.factor.h, map.factor.w}); }

std::vector<tensor::Range> channels_of(const ShuffledChannels& map, tensor::Range range, std::int64_t channels) {
  const std::int64_t per_group = channels / map.groups;
  std::vector<tensor::Range> found;
  for (std::int64_t group = 0; group < map.groups; ++group) {
    // Channel group + j * groups of dst, for all j for which it is in the range.
    const std::int64_t lo = (range.lo - group + map.groups - 1) / map.groups;
    const std::int64_t hi = (range.hi - group + map.groups - 1) / map.groups;
    if (lo < hi) found.push_back({group * per_group + lo, group * per_group + hi});
  }
  return found;
}

bool is_transposed(const IndexMap& map) { return std::visit(IsTransposed{}, map); }

bool flattens_space(const IndexMap& map) { return std::visit(FlattensSpace{}, map); }

std::int64_t halo_width(const IndexMap& map, tensor::Dim dim) { return std::visit(HaloWidth{dim}, map); }

bool is_cellwise(const OpTraits& traits) {
  return std::holds_alternative<SameCells>(traits.reads) && !traits.contraction && !traits.needs_all_channels;
}

}  // namespace orthant::model
