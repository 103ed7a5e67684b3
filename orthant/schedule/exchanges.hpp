#pragma once

#include "orthant/schedule/emitter.hpp"
#include "orthant/schedule/gather_rounds.hpp"
#include "orthant/schedule/levels.hpp"
#include "orthant/schedule/parcels.hpp"
#include "orthant/tensor/moves.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace orthant::schedule {

/// An exchange that was started: the steps that remain to be done when its messages are there.
struct Pending {
  int exchange = -1;
  std::vector<Step> after{};
};

/// Doubles that a group of ranks is going to add up.
struct Sums {
  int mine = -1;    ///< where this rank's are to be written
  int result = -1;  ///< where those of all are then; `mine` if there is nobody else
  std::vector<Round> rounds{};
};

/// A gradient on its way to the owners of a source: `own` is this rank's, complete after `pending`.
struct Returning {
  Pending pending;
  Value own;
};

/// What one rank has to do with a tensor that goes from those who hold it to those who want it. The way back is the
/// same, so it is found once for both.
struct Route {
  tensor::Box owned{};  ///< what the rank holds
  std::vector<tensor::Box> wanted{};
  std::optional<GatherGroup> group{};  ///< if the tensor goes in rounds
  tensor::Moves moves{};               ///< otherwise
};

/// Emits the messages of one rank with what they need before and after them.
class Exchanges {
 public:
  struct Setting {
    int rank = 0;
    /// Ranks of other stages take what they are sent when they come to it, which may be much later.
    bool has_stages = false;
    plan::ExchangeForms forms{};
    plan::Machines machines{};
  };

  Exchanges(Emitter& emitter, Schedule& schedule, const Setting& setting)
      : emitter_(emitter), schedule_(schedule), setting_(setting) {}

  /// The tag of the next exchange; those after it count on from there.
  void set_tag(int tag) { tag_ = tag; }
  void set_micro_batch(int micro_batch) { micro_batch_ = micro_batch; }

  [[nodiscard]] const plan::ExchangeForms& forms() const { return setting_.forms; }
  /// A group that this rank is a member of, by machine.
  const Levels& levels(const tensor::RankGroup& group);

  /// Packs what is not contiguous and emits the start. What arrives where memory is not contiguous, or is to be added
  /// to what is there, goes through a buffer of its own: finish() takes it from there. All that is sent lies in one
  /// buffer, and so does what is received.
  Pending start(const std::string& name, Kind kind, const Parcels& sends, const Parcels& receives,
                bool accumulate = false);
  /// The next tag is its tag.
  int start(const std::string& name, Kind kind, std::vector<Round> rounds);

  /// Waits for an exchange, and emits what remains to be done.
  void settle(Pending pending);
  /// The same, but a rank that only sends does not wait yet until its messages have been taken: it does so after the
  /// next messages that it receives, when their senders have most likely taken them.
  void finish(Pending pending);
  void finish(int exchange);
  /// Waits for all that was only sent.
  void settle_sends();
  /// Waits for what the micro-batch sent forward. In a pipeline its backward pass comes after the forward passes of all
  /// stages, which have taken everything.
  void settle_forward_sends();

  [[nodiscard]] Route route(const tensor::Redistribution& boxes) const;
  /// Every rank wants what it holds.
  [[nodiscard]] Route route_of_own(const tensor::Box& owned) const;
  /// What every rank wants of a tensor, in a new one, or in place where this rank has all it wants.
  Tensor collect(const std::string& name, Kind kind, const Value& own, const Route& route);
  /// The adjoint: what ranks computed for boxes they wanted goes to the owners, who add it up. Ends in `own`, in the
  /// memory of `gradient` where that is possible.
  Returning give_back(const std::string& name, Kind kind, const Tensor& gradient, const Route& route);
  /// Starts to send what others want of `own`, and to receive the rest of `stored`.
  Pending fill(const std::string& name, Kind kind, const NodeValue& value, const Route& route);

  /// Makes room for doubles that all ranks of the group will add up. A rank that is no member gets nothing.
  Sums prepare_sums(const std::string& name, std::int64_t count, const tensor::RankGroup& group);
  /// Every rank of the group gets the sum of the doubles of all, with the same bits. Returns the buffer of the result.
  int sum_up(const std::string& name, Kind kind, Sums sums);

 private:
  /// A send that was not waited for yet.
  struct UnsettledSend {
    int micro_batch = 0;
    Phase phase = Phase::forward;
    Pending pending;
  };

  /// Starts to bring the blocks of a group together in `all`, in rounds. What this rank has of them is there already,
  /// and it is `own`.
  Pending gather(const std::string& name, Kind kind, const GatherGroup& group, const Value& own, const Value& all);
  /// The adjoint: `partial` has what this rank adds to all blocks.
  Returning scatter(const std::string& name, Kind kind, const GatherGroup& group, const Value& partial);

  Emitter& emitter_;
  Schedule& schedule_;
  Setting setting_;
  std::vector<std::vector<int>> buffers_;  ///< per exchange: those of its messages
  int tag_ = 0;
  int micro_batch_ = 0;
  std::vector<UnsettledSend> unsettled_sends_;
  std::map<tensor::RankGroup, Levels> levels_;
};

}  // namespace orthant::schedule
