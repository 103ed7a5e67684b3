#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/data/sets/sample_store.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace orthant::train {

/// Parts of boxes that go from those who keep them to those who want them, all at once and behind compute. Between two
/// ranks they match in the order in which they are added.
class Delivery {
 public:
  /// `tag` is used by nobody else.
  Delivery(comm::Comm& comm, int tag) : comm_(comm), tag_(tag) {}

  void add_send(int peer, const data::sets::Held& from, const tensor::Box& part);
  void add_receive(int peer, const data::sets::Held& to, const tensor::Box& part);
  /// Within this rank.
  void add_copy(const data::sets::Held& from, const data::sets::Held& to, const tensor::Box& part);

  /// Posts what was added; what is sent must be there.
  void start();
  /// Returns when everything is in its place, and forgets it.
  void wait();
  /// The same where nobody wants it any more, started or not.
  void drop();

 private:
  struct Copy {
    data::sets::Held from, to;
    tensor::Box part;
  };
  /// Memory for a part that is not in one piece where it comes from or goes to.
  data::sets::Held room_for(const tensor::Box& part);

  comm::Comm& comm_;
  int tag_;
  std::vector<comm::Message> sends_, receives_;
  std::vector<Copy> before_, after_;  ///< copies before messages start, and when they are there
  std::deque<std::vector<std::byte>> rooms_;
  std::unique_ptr<comm::Transfer> transfer_;
};

}  // namespace orthant::train
