#pragma once

#include "orthant/model/graph.hpp"

#include <gtest/gtest.h>

namespace orthant::model {

inline void expect_same(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.spatial_count, b.spatial_count);
  EXPECT_EQ(a.loss, b.loss);
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    EXPECT_EQ(a.nodes[i].name, b.nodes[i].name);
    EXPECT_EQ(a.nodes[i].op, b.nodes[i].op) << a.nodes[i].name;
    EXPECT_EQ(a.nodes[i].srcs, b.nodes[i].srcs) << a.nodes[i].name;
    EXPECT_EQ(a.nodes[i].shape, b.nodes[i].shape) << a.nodes[i].name;
  }
}

}  // namespace orthant::model
