#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/data/sets/sample_store.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace orthant::train {

/// Sends parts of boxes from the ranks that keep them to the ranks that want them, all at once and while the engine
/// computes. Between two ranks, parts match in the order in which they are added.
class Delivery {
 public:
  /// No other message may use `tag`.
  Delivery(comm::Comm& comm, int tag) : comm_(comm), tag_(tag) {}

  void add_send(int peer, const data::sets::Held& from, const tensor::Box& part);
  void add_receive(int peer, const data::sets::Held& to, const tensor::Box& part);
  /// Within this rank.
  void add_copy(const data::sets::Held& from, const data::sets::Held& to, const tensor::Box& part);

  /// Posts all messages that were added. Everything that is sent must be in memory by now.
  void start();
  /// Returns when every part is where it is wanted, and removes them all from the list.
  void wait();
  /// The same when the parts are no longer wanted, whether or not they were started.
  void drop();

 private:
  struct Copy {
    data::sets::Held from, to;
    tensor::Box part;
  };
  /// Memory for a part that is not contiguous at its source or destination.
  data::sets::Held room_for(const tensor::Box& part);

  comm::Comm& comm_;
  int tag_;
  std::vector<comm::Message> sends_, receives_;
  std::vector<Copy> before_, after_;  ///< copies made before the messages start and after they arrive
  std::deque<std::vector<std::byte>> rooms_;
  std::unique_ptr<comm::Transfer> transfer_;
};

}  // namespace orthant::train
