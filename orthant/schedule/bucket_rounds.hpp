#pragma once

#include "orthant/plan/plan.hpp"
#include "orthant/schedule/levels.hpp"
#include "orthant/schedule/schedule.hpp"

namespace orthant::schedule {

/// How the items of a bucket are shared out among its holders. Every active place of a machine has a region, the same
/// on all machines; the region's owners, one per machine, have equal pieces of it.
struct BucketParts {
  int regions = 1, owners = 1;
  std::int64_t piece_items = 0;

  [[nodiscard]] std::int64_t items() const { return regions * owners * piece_items; }
  [[nodiscard]] tensor::Range region(int place) const {
    return {place * owners * piece_items, (place + 1) * owners * piece_items};
  }
  [[nodiscard]] tensor::Range piece(int place, int owner) const {
    const std::int64_t first = region(place).lo + owner * piece_items;
    return {first, first + piece_items};
  }
  /// What this rank updates; empty if it owns nothing.
  [[nodiscard]] tensor::Range own(const Levels& levels) const;
};

/// Pieces are whole multiples of `granule` items.
BucketParts parts_of_bucket(const Levels& levels, const plan::GroupForm& form, std::int64_t items,
                            std::int64_t granule);

/// The rounds of one exchange of a bucket.
struct BucketRounds {
  std::vector<Round> rounds;
  std::int64_t staging_bytes = 0;  ///< what arrives before it is combined takes at most so much
  /// Where the others' items of this rank's piece are after the only round, if they are not to be added by it.
  std::vector<Piece> arrived{};
};

struct BucketExchange {
  const Levels& levels;
  const plan::GroupForm& form;
  const BucketParts& parts;
  int buffer = -1;   ///< the bucket
  int staging = -1;  ///< what arrives; as large as `staging_bytes` then says
  Transport inside = Transport::moved;
  /// Per other member of this machine, if they are read in place: the buffers that they keep.
  std::vector<int> kept{};
};

/// Afterwards every owner has the sum of its piece, in place. With `leaves_last` and one round nothing is added: the
/// caller adds what has `arrived`.
BucketRounds reduce_rounds(const BucketExchange& exchange, bool leaves_last);
/// Every owner's piece goes to all holders.
BucketRounds spread_rounds(const BucketExchange& exchange);

}  // namespace orthant::schedule
