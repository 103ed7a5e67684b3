#pragma once

#include "orthant/plan/plan.hpp"

#include <map>
#include <string>

namespace orthant::test {

/// How many plans of a test cut something, by what they cut: a test whose plans cut nothing would compare one rank with
/// one rank. A plan counts under
///   n c d h w      if a node's dst is cut in that dim
///   filters        if a node with weights is cut between filters (stationary-y, stationary-w)
///   channel_parts  if a sum over source channels is cut (stationary-x, stationary-w)
///   stages         if it has more than one
///   micro_batches  if it has more than one
///   uneven         if the blocks of a node differ in size
///   empty          if a block of a node has no cells
///   idle           if a rank has no block of a node
///   redistributed  if a node is cut otherwise than one of its sources, or is on other ranks
class CutCounts {
 public:
  void add(const model::Graph& graph, const plan::Plan& plan);

  /// Fails, as gtest expectations, for every name of which fewer plans in a hundred were counted than this.
  void expect_percent(const std::map<std::string, int>& least) const;
  /// The same with the number of plans.
  void expect_plans(const std::map<std::string, int>& least) const;

 private:
  [[nodiscard]] int count(const std::string& name) const;

  int plans_ = 0;
  std::map<std::string, int> counts_;
};

}  // namespace orthant::test
