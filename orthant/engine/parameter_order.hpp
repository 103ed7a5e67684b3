#pragma once

#include "orthant/plan/share.hpp"

#include <array>
#include <span>
#include <vector>

namespace orthant::engine {

/// Copies a rank's shard of a parameter between the order of files (PyTorch's, the whole parameter) and that of the
/// kernels.
void to_kernel_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                     std::span<const float> file, std::span<float> memory);
void to_file_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                   std::span<const float> memory, std::span<float> file);

/// The same for some items of the shard, in kernels' order: what a rank updates of it, and the optimizer's state of
/// that (schedule::ParameterBuffers). `memory` has just these. So state can be read and written whatever the plan.
void to_kernel_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                     const tensor::Range& items, std::span<const float> file, std::span<float> memory);
void to_file_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                   const tensor::Range& items, std::span<const float> memory, std::span<float> file);

/// A box of a parameter, which has [first][second][taps] in the order of files.
struct ParameterBox {
  tensor::Range first, second, taps;
  friend bool operator==(const ParameterBox&, const ParameterBox&) = default;
};
/// The extents of [first][second][taps].
ParameterBox whole_box(const model::Parameter& parameter);
std::int64_t volume(const ParameterBox& box);
/// True if they have items in common.
bool overlap(const ParameterBox& a, const ParameterBox& b);

/// Where a shard's items lie in the order of kernels, box by box.
class KernelOrder {
 public:
  KernelOrder(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard);

  /// A box, and where it begins in the shard: consecutive rows and columns of it.
  struct Part {
    ParameterBox box;
    std::int64_t row = 0, column = 0;
  };
  /// Some items in kernels' order as boxes, each item in one of them.
  [[nodiscard]] std::vector<Part> parts_of(const tensor::Range& items) const;
  /// Copies a part into `file`, which has just its items in the order of files; `memory` has `items` of the shard.
  void to_file_order(const Part& part, const tensor::Range& items, std::span<const float> memory,
                     std::span<float> file) const;

 private:
  /// The order of kernels, the slowest first: [groups][taps][columns][rows of a group] for convolutions, else
  /// [1][rows][columns][taps].
  struct Axis {
    enum class Kind { group, row, column, tap };
    Kind kind = Kind::tap;
    std::int64_t extent = 0;
  };
  struct Block {
    std::array<tensor::Range, 4> along;  ///< per axis of the order
  };
  void split(std::size_t axis, const tensor::Range& items, Block block, std::vector<Block>& blocks) const;
  [[nodiscard]] tensor::Range along(const Block& block, Axis::Kind kind) const;
  void add_parts(const Block& block, std::vector<Part>& parts) const;
  [[nodiscard]] std::int64_t item(std::int64_t row, std::int64_t column, std::int64_t tap) const;

  std::vector<std::int64_t> first_, second_;  ///< rows and columns of the shard in the file
  std::int64_t taps_ = 1, rows_per_group_ = 1;
  bool conv_ = false;
  std::array<Axis, 4> order_;
};

}  // namespace orthant::engine
