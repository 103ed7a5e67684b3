#pragma once

#include "orthant/schedule/analysis.hpp"
#include "orthant/schedule/bucket_rounds.hpp"
#include "orthant/schedule/exchanges.hpp"
#include "orthant/schedule/tags.hpp"

#include <utility>
#include <vector>

namespace orthant::schedule {

/// The parameters of one rank: where they lie, and how their gradients become updates. Trained ones lie in buckets, in
/// the order in which backward finishes their gradients. Every owner of a piece of a bucket gets the sum of the
/// gradients of its piece (a reduce-scatter) and updates it, and the piece goes to all holders (an all-gather).
class Parameters {
 public:
  Parameters(const Analysis& analysis, int rank, const LowerOptions& options, Emitter& emitter, Exchanges& exchanges,
             Schedule& schedule);

  /// The buffers of a node's parameter; -1 where there is none.
  [[nodiscard]] int value_of(int node, model::Parameter::Role role) const;
  [[nodiscard]] int gradient_of(int node, model::Parameter::Role role) const;
  /// A rank that computes nothing of a node adds nothing to its gradients.
  void zero_gradients(int node);

  /// Starts the sum over holders of the buckets that the unit's gradients complete.
  void reduce(int unit);
  /// Ends all sums, updates what is not yet, and waits until all holders have the results.
  void finish();

 private:
  /// What is known of a bucket while the schedule is made.
  struct Filling {
    struct Member {
      int parameter;
      std::int64_t first_item;
    };
    std::vector<Member> members{};
    int last_unit = 0;  ///< the unit whose gradient comes last
    BucketParts parts{};
  };
  /// A bucket whose gradients are being summed.
  struct Reducing {
    int bucket = 0;
    int exchange = -1;
    std::vector<Piece> arrived{};  ///< what the update is to add
  };

  void fill_buckets();
  void declare_bucket(int index);
  void declare_state(const Bucket& bucket, const Filling::Member& member, ParameterBuffers& entry);
  void finish_reductions(std::size_t in_flight);
  void release_gradients(std::size_t count);
  void update(const Bucket& bucket, const std::vector<Piece>& arrived);
  void clear_gaps(int bucket);
  void start_reduction(int index);
  void start_spreading(int index);
  [[nodiscard]] bool reads_in_place() const;
  [[nodiscard]] bool stays(const Bucket& bucket, const BucketParts& parts);
  [[nodiscard]] const ParameterBuffers* find(int node, model::Parameter::Role role) const;

  const Analysis& analysis_;
  int rank_;
  const LowerOptions& options_;
  Emitter& emitter_;
  Exchanges& exchanges_;
  Schedule& schedule_;
  Tags tags_;
  std::vector<Filling> fillings_;  ///< per bucket
  std::vector<Reducing> reducing_;
  std::vector<int> read_by_others_;  ///< buckets whose gradients other ranks may still be reading
  std::vector<int> spreading_;       ///< exchanges with results on their way to all holders
};

}  // namespace orthant::schedule
