#pragma once

#include "orthant/model/ops.hpp"

#include "orthant/tensor/box.hpp"

#include <optional>
#include <vector>

namespace orthant::model {

// Which cells of its sources a box of an op's dst is computed from. n is always the same.

/// There is nothing to read: the network's input.
struct NoSource {};
/// The same channels and cells of every source.
struct SameCells {};
/// The same channels, under a window that slides over the source.
struct UnderWindow {
  tensor::Window window;
};
/// The same channels of those cells whose window, sliding over dst, covers a cell of the box.
struct UnderTransposedWindow {
  tensor::Window window;
  tensor::Extent3 output_padding;
};
/// The same channels, all cells, of which every rank makes one where they lie: nobody reads those of others, unless
/// they are of an earlier pipeline stage.
struct WholeSpace {};
/// The same cells and channels; of a source that has one cell or one channel, that one.
struct BroadcastCells {};
/// Channels from `first_channel` on; along every spatial dim what a rule says.
struct AlongAxes {
  std::array<tensor::AxisRule, 3> rules{};  ///< d, h, w
  std::int64_t first_channel = 0;
};
/// The same cells; channels in another order.
struct ShuffledChannels {
  std::int64_t groups = 1;
};
/// Cells of one side are blocks of cells of the other, whose channels are as many fewer: of dst, or, `to_channels`, of
/// the source.
struct CellBlocks {
  tensor::Extent3 factor;
  bool to_channels = false;
};
/// The same cells; the channels of dst are those of the sources one after the other.
struct ConcatenatedChannels {};
/// All cells; the channels of dst are channels and cells of the source.
struct FlattenedChannels {};

using IndexMap = std::variant<NoSource, SameCells, UnderWindow, UnderTransposedWindow, WholeSpace, BroadcastCells,
                              AlongAxes, ShuffledChannels, CellBlocks, ConcatenatedChannels, FlattenedChannels>;

/// A layer that sums over the channels of its source, weighted: each dst channel over all those of its group, so the
/// index map says nothing of its channels.
struct Contraction {
  std::int64_t groups = 1;
  bool bias = true;
  Init init = Init::torch;
  double bias_value = 0;
};

/// What code that cuts, fuses, counts or initialises ops needs to know about one. Such code looks at the traits and
/// does not ask which op it is, so a new op is right everywhere once its traits are.
struct OpTraits {
  IndexMap reads;
  std::optional<Contraction> contraction{};
  bool many_sources = false;        ///< two or more, instead of one
  bool needs_all_channels = false;  ///< a dst cell depends on every channel of its pixel
  bool batch_statistics = false;    ///< it normalises with mean and variance over samples and space
  /// It normalises every sample with mean and variance over space and groups of channels: so many, or as many as there
  /// are channels if this is 0.
  std::optional<std::int64_t> sample_groups{};
  bool takes_residual = false;    ///< its kernel can add a tensor to what it writes
  bool takes_activation = false;  ///< and then apply an activation
  bool backward_reads_dst = false;
  bool whole_parameters = false;  ///< every rank has all of its parameters, whatever channels it has
};

OpTraits traits_of(const Op& op);

/// True if it normalises with statistics that ranks add up. Then backward finds what goes into the activation in src.
inline bool has_statistics(const OpTraits& traits) { return traits.batch_statistics || traits.sample_groups; }

/// The rule of an index map along a spatial dim.
const tensor::AxisRule& rule_of(const AlongAxes& map, tensor::Dim dim);

/// The op's window, or null if it has none.
const tensor::Window* window_of(const IndexMap& map);

/// The cells of a block.
std::int64_t count(const CellBlocks& map);

/// The channels of the source that channels [range.lo, range.hi) of dst are, in the order of the source: of each group
/// some side by side.
std::vector<tensor::Range> channels_of(const ShuffledChannels& map, tensor::Range range, std::int64_t channels);

/// True if the window slides over dst, from which the source would be computed.
bool is_transposed(const IndexMap& map);

/// True if cells of the source become channels: dst channels may be cut only between the channels of the source.
bool flattens_space(const IndexMap& map);

/// How many cells beyond those of its own block a rank reads of the source along a dim, on the side where it is more.
std::int64_t halo_width(const IndexMap& map, tensor::Dim dim);

/// True if a dst cell depends on the same cell and channel of the sources only: then nothing moves if both are cut
/// alike.
bool is_cellwise(const OpTraits& traits);

}  // namespace orthant::model
