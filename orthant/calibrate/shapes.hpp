#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/schedule/schedule.hpp"

#include <string>
#include <vector>

namespace orthant::calibrate {

/// A network whose tasks are measured, cut in some way. One rank stands for all of them.
struct Sample {
  std::string network, input;
  std::int64_t mini_batch = 1;
  std::string grid{};  ///< empty: not cut
};

/// Networks, sizes and cuts that have between them what networks of our kind are made of, the most valuable first: 3-D
/// windows on 1 to 512 channels, slabs down to a few cells, few channels and few filters, 2-D windows of all kinds.
const std::vector<Sample>& general_samples();

/// "resnet50 3x224x224 x8 n2".
std::string text_of(const Sample& sample);

/// The schedule of a rank in the middle, without messages' partners: it is only to be replayed.
schedule::Schedule schedule_of(const Sample& sample, const schedule::LowerOptions& options);

}  // namespace orthant::calibrate
