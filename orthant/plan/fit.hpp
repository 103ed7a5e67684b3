#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/tensor/distribution.hpp"

#include <optional>
#include <string>
#include <vector>

namespace orthant::plan {

/// Why a grid does not suit a node.
struct Misfit {
  enum class Kind { samples, channels, groups, all_channels, no_space, space, padding };
  Kind kind = Kind::space;
  tensor::Dim dim = tensor::Dim::d;
  std::int64_t extent = 0;  ///< cells (channels, groups, samples) that there are
  int parts = 1;

  bool operator==(const Misfit&) const = default;
};

/// "2 cells deep, too small for d4".
std::string to_text(const Misfit& misfit);

/// "1 sample", "2 samples".
std::string counted(std::int64_t number, const char* what);

/// True for the ops that sum over src channels, so that the sum can be cut: ungrouped convolutions and dense layers.
bool sums_channels(const model::Op& op);
/// Groups of a convolution; 1 for other ops.
std::int64_t groups_of(const model::Op& op);

/// Convolutions and dense layers: what has flops.
bool computes(const model::Op& op);

/// The first part along `dim` whose windows look at padding only; -1 if there is none.
int padding_part(const model::Graph& graph, int node, tensor::Dim dim, int parts);

/// Which grids suit the nodes of a graph. Stricter than what can run: blocks are at least two cells thick and no
/// thinner than what their neighbours read of them, and groups are cut evenly.
class Fit {
 public:
  /// `samples` of the mini-batch go through the network at a time.
  Fit(const model::Graph& graph, std::int64_t samples);

  /// Nothing if the grid suits the node.
  [[nodiscard]] std::optional<Misfit> misfit(int node, const tensor::Grid& grid) const;
  /// The largest number of parts along a spatial dim that suits the node.
  [[nodiscard]] int most_parts(int node, tensor::Dim dim) const;

 private:
  [[nodiscard]] std::optional<Misfit> channel_misfit(int node, int parts) const;
  [[nodiscard]] std::optional<Misfit> space_misfit(int node, tensor::Dim dim, int parts) const;

  const model::Graph& graph_;
  std::int64_t samples_;
  std::vector<tensor::Extent3> least_;  ///< per node the cells that its thinnest block must have
};

}  // namespace orthant::plan
