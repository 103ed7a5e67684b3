#include "orthant/planner/traffic.hpp"

#include "orthant/tensor/crossings.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::planner {
namespace {

using tensor::Box;
using tensor::Dim;

/// A part that is at no border, as far as there is one.
int middle_part(const tensor::Grid& grid) {
  tensor::Grid middle;
  for (const Dim dim : tensor::all_dims) middle[dim] = grid[dim] / 2;
  return tensor::index_of(grid, middle);
}

/// How many blocks of a distribution have cells of a box.
double blocks_touched(const tensor::Distribution& held, const Box& box) {
  double count = 1;
  for (const Dim dim : tensor::all_dims) {
    if (held.grid[dim] == 1) continue;
    int here = 0;
    tensor::for_each_crossing(
        box[dim], held.grid[dim], [&](int i) { return tensor::block(held, dim, i); },
        [&](int, const auto&) { ++here; });
    count *= here;
  }
  return count;
}

double rounds_of(int ranks, int direct_up_to) {
  return ranks <= direct_up_to ? 1 : std::ceil(std::log2(static_cast<double>(ranks)));
}

}  // namespace

Traffic traffic_of(const tensor::Redistribution& boxes, const Network& network) {
  const int rank = boxes.wanted.first_rank + middle_part(boxes.wanted.grid);
  const tensor::Range here = network.machines.neighbours(rank);
  Traffic traffic;
  for (const Box& box : tensor::wanted_boxes(boxes.wanted, rank)) {
    double outside = static_cast<double>(tensor::volume(box));
    double peers = blocks_touched(boxes.held, box);
    for (auto other = static_cast<int>(here.lo); other < static_cast<int>(here.hi); ++other) {
      if (!tensor::takes_part(boxes.held, other)) continue;
      const auto cells =
          static_cast<double>(tensor::volume(tensor::intersection(box, tensor::owned_box(boxes.held, other))));
      if (cells == 0) continue;
      outside -= cells;
      peers -= 1;
      if (other == rank) continue;
      traffic.inside_bytes += cells * sizeof(float);
      traffic.inside_messages += 1;
    }
    traffic.between_bytes += outside * sizeof(float);
    traffic.between_messages += std::max(0.0, peers);
  }
  const double crowd = static_cast<double>(tensor::parts(boxes.wanted.grid)) / tensor::parts(boxes.held.grid);
  if (crowd > 1) {
    for (double* figure :
         {&traffic.inside_bytes, &traffic.between_bytes, &traffic.inside_messages, &traffic.between_messages})
      *figure *= crowd;
  }
  return traffic;
}

double seconds_of(const Traffic& traffic, const Network& network) {
  const oracle::Link& inside = network.profile.inside;
  const oracle::Link& between = network.profile.between;
  double seconds = 0;
  if (traffic.inside_messages > 0)
    seconds += inside.latency_seconds + 2 * traffic.inside_messages * inside.message_seconds +
               traffic.inside_bytes / inside.bytes_per_second;
  if (traffic.between_messages > 0)
    seconds += between.latency_seconds + 2 * traffic.between_messages * between.message_seconds +
               traffic.between_bytes * network.ranks_per_machine / between.bytes_per_second;
  return seconds;
}

Members members_of(const tensor::Grid& grid, const Network& network) {
  // Ranks count along space first, then channels, then samples.
  const int space = grid.d * grid.h * grid.w;
  const int room = network.ranks_per_machine;
  const int inside = space * grid.c <= room ? room / grid.c : std::min(space, room);
  const int ranks = grid.n * space;
  return {.ranks = ranks, .inside = std::clamp(inside, 1, ranks)};
}

double sum_seconds(const Members& members, const Network& network) {
  constexpr int direct_up_to = 8;
  const auto level = [&](int count, const oracle::Link& link) {
    if (count == 1) return 0.0;
    const double messages = count <= direct_up_to ? count - 1 : 1;
    return rounds_of(count, direct_up_to) * (link.latency_seconds + 2 * messages * link.message_seconds);
  };
  const int machines = (members.ranks + members.inside - 1) / members.inside;
  return 2 * level(members.inside, network.profile.inside) + level(machines, network.profile.between);
}

double reduction_seconds(double bytes, const Members& members, const Network& network) {
  constexpr double bucket_bytes = 2 << 20;
  const double buckets = bytes / bucket_bytes;
  const auto level = [&](int count, double moved, double flows, const oracle::Link& link) {
    if (count == 1) return 0.0;
    return 2 * (buckets * rounds_of(count, 4) * (link.latency_seconds + 2 * link.message_seconds) +
                moved * flows * (count - 1) / count / link.bytes_per_second);
  };
  const int machines = (members.ranks + members.inside - 1) / members.inside;
  // The members on a machine share what goes to others, but the rest of the machine has shards of its own.
  return level(members.inside, bytes, 1, network.profile.inside) +
         level(machines, bytes / members.inside, network.ranks_per_machine, network.profile.between);
}

}  // namespace orthant::planner
