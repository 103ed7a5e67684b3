#pragma once

#include "orthant/data/sets/dataset.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace orthant::train {

/// Samples to train on and samples to validate with, each in rising order.
struct Split {
  std::vector<std::int64_t> training, validation;
};

/// The name of the group that a split must not divide: for cubes of one universe (`universe_00012_d0_h1_w3.h5`) the
/// part before `_d0`, for any other file its own name.
std::string group_of(const std::string& name);

/// Sets aside `fraction` of the groups, rounded, at least one and not all of them. Depends on names and seed only.
/// Throws Error if there is only one group.
Split split_samples(const data::sets::Dataset& dataset, double fraction, std::uint64_t seed);

}  // namespace orthant::train
