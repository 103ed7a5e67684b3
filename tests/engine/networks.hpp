#pragma once

#include "orthant/model/graph.hpp"

#include <cstdint>
#include <vector>

namespace orthant::test {

/// Small networks that between them hold every op, every fusion and every loss; the graph's name says what it is about.
std::vector<model::Graph> small_networks();

/// A network of random ops, shapes and connections; different for every seed.
model::Graph random_network(std::uint64_t seed);

}  // namespace orthant::test
