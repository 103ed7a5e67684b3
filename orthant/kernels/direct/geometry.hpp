#pragma once

#include "orthant/model/task.hpp"

#include <vector>

namespace orthant::kernels::direct {

/// A half-open range.
struct Range {
  std::int64_t lo = 0, hi = 0;
};

/// A tap of the window along one dim.
struct Tap {
  std::int64_t index = 0;   ///< in the weights
  std::int64_t offset = 0;  ///< source cell of output 0; may lie outside
};

/// One dim of a correlation: output t is the cell first + t * step of dst, and its tap reads cell offset + t *
/// src_step.
struct Axis {
  std::int64_t first = 0, step = 1, count = 0;
  std::int64_t src_step = 1, src_extent = 0;
  std::vector<Tap> taps{};  ///< by ascending offset
};

/// The taps that read inside the source for output t.
Range taps_inside(const Axis& axis, std::int64_t t);
/// The outputs of `outputs` for which `tap` reads inside the source.
Range outputs_inside(const Axis& axis, const Tap& tap, Range outputs);
/// The cells that some outputs read, from the first to one past the last, including cells outside the source. Empty if
/// there are no taps.
Range cells_read(const Axis& axis, Range outputs);

/// A cross-correlation: every output cell is a sum over its taps and `in` channels, per group. The forward
/// pass is one; backward_data is one for each phase of the stride, in which all cells have the same taps.
struct Correlation {
  Axis d, h, w;
  tensor::Layout src, dst;
  std::int64_t groups = 1;
  std::int64_t in = 1, out = 1;  ///< channels per group
  tensor::Extent3 window;        ///< taps of the whole weights
  bool transposed = false;       ///< the weights lie as [out][in]
};

std::int64_t taps(const Correlation& correlation);
/// Output cells per sample and channel.
std::int64_t outputs(const Correlation& correlation);

Correlation forward_correlation(const model::ConvTask& task);
std::vector<Correlation> backward_data_correlations(const model::ConvTask& task);

/// How the outputs are cut into units of work that fit the cache.
struct Blocks {
  std::int64_t d = 1, h = 1, w = 1;  ///< outputs per unit
};
std::int64_t block_count(const Correlation& correlation, const Blocks& blocks);
/// Cells of the source that one unit reads, per dim.
tensor::Extent3 block_cells(const Correlation& correlation, const Blocks& blocks);
/// Gives at least `units` units, unless they would become too small. With `outputs_again` the outputs of a unit are
/// read many times and must fit the cache, too.
Blocks choose_blocks(const Correlation& correlation, std::int64_t units, bool outputs_again);

/// The outputs of one unit. Units are numbered with d fastest, then h, w, group and sample.
struct Unit {
  std::int64_t n = 0, group = 0;
  Range d, h, w;
};
Unit unit_at(const Correlation& correlation, const Blocks& blocks, std::int64_t index);

}  // namespace orthant::kernels::direct
