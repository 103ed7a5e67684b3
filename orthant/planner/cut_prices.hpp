#pragma once

#include "orthant/planner/local_work.hpp"
#include "orthant/planner/traffic.hpp"

#include <optional>
#include <unordered_map>

namespace orthant::planner {

/// What a cut costs on the rank with most work.
struct Priced {
  double seconds = 0;            ///< of kernels, and of messages that are waited for
  double reduction_seconds = 0;  ///< of gradients and weights, which travel while something else is computed
  double bytes = 0;              ///< that are kept until the backward pass, or for ever
  int channel_parts = 1;         ///< see plan::NodePlan
};
Priced operator+(const Priced& a, const Priced& b);

/// Prices of nodes under cuts. Nodes that are alike are priced once. Everything that it is given must outlive it.
class CutPrices {
 public:
  CutPrices(const model::Graph& graph, const oracle::Prices& prices, Network network,
            const model::Optimizer& optimizer);

  [[nodiscard]] const model::Graph& graph() const { return graph_; }
  [[nodiscard]] const Network& network() const { return network_; }

  /// What depends on the node's own cut alone. Of layers that sum over channels this is only what they keep.
  Priced own(int node, const tensor::Grid& grid);
  /// What reading a source costs in both directions and, of a layer that sums over channels, its work: one entry for
  /// each way to cut the sum. Without a cut of the source nothing has to be moved.
  const std::vector<Priced>& reading(int node, std::size_t source, const std::optional<tensor::Grid>& from,
                                     const tensor::Grid& grid);

 private:
  struct Key {
    int node = 0;
    int source = 0;
    tensor::Grid from{}, grid{};
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  [[nodiscard]] const model::Node& at(int node) const { return graph_.nodes[static_cast<std::size_t>(node)]; }
  void find_alike();
  [[nodiscard]] bool alike(int a, int b) const;
  [[nodiscard]] plan::NodeCut cut(int node, const tensor::Grid& grid, int channel_parts);
  [[nodiscard]] Priced price_own(int node, const tensor::Grid& grid);
  [[nodiscard]] Priced price_layer(int node, const std::optional<tensor::Grid>& from, const tensor::Grid& grid,
                                   int channel_parts);
  [[nodiscard]] Priced parameters(int node, const tensor::Grid& grid) const;
  [[nodiscard]] double moving_seconds(const tensor::Redistribution& boxes) const;
  [[nodiscard]] std::vector<int> ways_to_sum(int node, const tensor::Grid& grid) const;

  const model::Graph& graph_;
  const oracle::Prices& prices_;
  const Network network_;
  model::Optimizer optimizer_;
  plan::Plan scratch_;                ///< the cuts of the nodes that are looked at
  std::vector<int> first_alike_;      ///< per node
  std::vector<bool> fused_;           ///< per node: it is computed by another one's kernel
  std::vector<bool> is_kept_;         ///< per node: it has memory of its own
  std::vector<bool> needs_gradient_;  ///< per node
  std::unordered_map<Key, std::vector<Priced>, Hash> known_;
};

}  // namespace orthant::planner
