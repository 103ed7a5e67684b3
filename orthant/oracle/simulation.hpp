#pragma once

#include "orthant/oracle/actors.hpp"

#include <queue>
#include <vector>

namespace orthant::oracle {

/// What an actor did with a stretch of its time.
struct Stretch {
  int step = 0;
  double begin = 0, end = 0;
  bool waiting = false;  ///< for messages; otherwise computing or handing messages over
};

/// The step of all actors in predicted time.
struct Course {
  std::vector<std::vector<Stretch>> stretches;  ///< per actor, in order
  std::vector<double> ends;                     ///< per actor
  std::vector<double> hidden;  ///< per actor: seconds in which messages were under way while it computed
  int forced =
      0;  ///< waits that were given up because no actor could end them: a class is no true image of its members
};

/// Lets actors run through their steps as the engine does: messages start with the step that starts them, move along
/// when their ranks look after them (after every kernel, inside those that poll, and while waiting), rounds follow each
/// other, and a rank goes on when what it waits for has come. The actor that is furthest behind always goes first, so
/// that nobody sees the future.
class Simulation {
 public:
  Simulation(std::vector<Actor> actors, const Profile& profile);
  Course run();
  [[nodiscard]] const std::vector<Actor>& actors() const { return actors_; }

 private:
  struct State {
    double now = 0;
    std::size_t step = 0;
    int pieces_left = -1;  ///< of the kernel that runs; -1: it has not begun
    double stretch_began = 0;
    double link_free = 0;    ///< when what was sent to other machines has left
    double taken_until = 0;  ///< when the processor has taken in what was received
    bool blocked = false, ended = false;
    bool has_news = false;         ///< for those that wait for its messages
    std::vector<int> in_flight{};  ///< exchanges
    double piece_seconds = 0;      ///< of the kernel that runs
  };
  struct Turn {
    double time = 0;
    int actor = 0;
    bool operator>(const Turn& other) const { return time != other.time ? time > other.time : actor > other.actor; }
  };

  void advance(int actor);
  bool compute(int actor);
  void start(int actor, int exchange);
  bool finish(int actor, int exchange);
  void poll(int actor);
  bool advance_exchange(int actor, ExchangeEnds& exchange);
  void begin_round(int actor, ExchangeEnds& exchange, double time);
  double settle(int actor, MessageEnd& end);
  void settle_receive(int actor, MessageEnd& end);
  void take_in(int actor, double begin, double seconds, double message_seconds);
  void settle_send(int actor, MessageEnd& end);
  [[nodiscard]] double next_event(int actor) const;
  [[nodiscard]] double next_event(const MessageEnd& end) const;
  void wake(int actor);
  [[nodiscard]] double collective_end(const ExchangeEnds& exchange) const;
  void put_on_wire(int actor, MessageEnd& end);
  void end_step(int actor, bool waiting);
  void wake_listeners(int actor);
  void push(int actor);
  void force_one();
  [[nodiscard]] const Link& link_of(const MessageEnd& end) const {
    return end.inside ? profile_.inside : profile_.between;
  }
  [[nodiscard]] const MessageEnd* other_end(const MessageEnd& end) const;

  std::vector<Actor> actors_;
  const Profile& profile_;
  std::vector<State> states_;
  Course course_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
};

}  // namespace orthant::oracle
