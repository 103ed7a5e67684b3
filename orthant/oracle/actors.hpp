#pragma once

#include "orthant/oracle/prices.hpp"
#include "orthant/plan/machines.hpp"
#include "orthant/schedule/schedule.hpp"

#include <limits>
#include <vector>

namespace orthant::oracle {

inline constexpr double never = std::numeric_limits<double>::infinity();

/// One end of a message, and what has become of it so far in predicted time.
struct MessageEnd {
  int peer_actor =
      -1;  ///< who plays the other end; -1 if nobody does, and it goes as if the peer did what this one does
  int peer_message = -1;  ///< which of its ends
  bool is_send = false;
  bool inside = false;    ///< of a machine
  bool eager = false;     ///< goes without waiting for the receiver
  double bytes = 0;       ///< that move
  double link_share = 1;  ///< how many times longer than alone the wire takes, because others of the machine send, too

  double posted = never;
  double answered = never;  ///< receiver: when it has told the sender to go on
  double arrival = never;   ///< sender: when the last byte is at the receiver
  double done = never;
};

/// One round of an exchange: a range of the actor's messages, then combinations, or a collective.
struct RoundEnds {
  std::size_t first = 0, last = 0;
  double combination_seconds = 0;
  double collective_seconds = 0;  ///< if it is one: from the moment when all have called it
  bool is_collective = false;
};

struct ExchangeEnds {
  schedule::Kind kind = schedule::Kind::halo;
  int tag = 0;
  std::vector<RoundEnds> rounds{};
  int round = -1;  ///< that is under way; -1: not started; rounds.size(): done
  double round_began = 0;
  double started = 0;
};

/// A rank whose step is followed through time. It stands for all ranks of its class.
struct Actor {
  int rank = 0;
  int members = 1;
  const schedule::Schedule* schedule = nullptr;
  std::vector<Price> prices{};  ///< per step
  std::vector<bool> polls{};    ///< per step: the kernel looks after messages while it runs
  std::vector<ExchangeEnds> exchanges{};
  std::vector<MessageEnd> messages{};
  std::vector<int> listeners{};  ///< actors that wait for ends of this one
};

/// A schedule with the rank, or the class of ranks, that it is of.
struct RankSchedule {
  int rank = 0;
  int members = 1;
  schedule::Schedule schedule;
};

struct Cast {
  const std::vector<RankSchedule>& schedules;
  std::vector<int> actor_of;  ///< per rank: which of the schedules it follows
  plan::Machines machines{};
};

/// Prices the steps of all schedules and joins the ends of their messages.
std::vector<Actor> make_actors(const Cast& cast, const Prices& prices);

}  // namespace orthant::oracle
