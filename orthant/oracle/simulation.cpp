#include "orthant/oracle/simulation.hpp"

#include <algorithm>
#include <utility>

namespace orthant::oracle {
namespace {

/// Into how many pieces a kernel that polls is cut.
int pieces_of(double seconds) {
  constexpr double piece_seconds = 3e-4;
  constexpr int most_pieces = 8;
  return std::clamp(static_cast<int>(seconds / piece_seconds), 1, most_pieces);
}

}  // namespace

Simulation::Simulation(std::vector<Actor> actors, const Profile& profile)
    : actors_(std::move(actors)), profile_(profile), states_(actors_.size()) {
  course_.stretches.resize(actors_.size());
  course_.ends.resize(actors_.size());
  course_.hidden.resize(actors_.size());
}

Course Simulation::run() {
  for (std::size_t actor = 0; actor < actors_.size(); ++actor) push(static_cast<int>(actor));
  std::size_t ended = 0;
  while (ended < actors_.size()) {
    if (turns_.empty()) {
      force_one();
      continue;
    }
    const Turn turn = turns_.top();
    turns_.pop();
    State& state = states_[static_cast<std::size_t>(turn.actor)];
    if (state.ended || state.blocked || turn.time != state.now) continue;
    advance(turn.actor);
    if (state.ended) ++ended;
  }
  return std::move(course_);
}

void Simulation::push(int actor) { turns_.push({states_[static_cast<std::size_t>(actor)].now, actor}); }

/// One kernel, or a piece of it, one start, or one look at what is waited for.
void Simulation::advance(int actor) {
  const Actor& mine = actors_[static_cast<std::size_t>(actor)];
  State& state = states_[static_cast<std::size_t>(actor)];
  if (state.step == mine.schedule->steps.size()) {
    state.ended = true;
    course_.ends[static_cast<std::size_t>(actor)] = state.now;
    return;
  }
  const auto& work = mine.schedule->steps[state.step].work;
  bool goes_on = true;
  if (const auto* begun = std::get_if<schedule::Start>(&work)) {
    start(actor, begun->exchange);
    end_step(actor, false);
  } else if (const auto* ended = std::get_if<schedule::Finish>(&work)) {
    goes_on = finish(actor, ended->exchange);
  } else {
    goes_on = compute(actor);
  }
  if (goes_on) push(actor);
  if (std::exchange(state.has_news, false)) wake_listeners(actor);
}

/// True always: computing never has to wait.
bool Simulation::compute(int actor) {
  const Actor& mine = actors_[static_cast<std::size_t>(actor)];
  State& state = states_[static_cast<std::size_t>(actor)];
  const double seconds = mine.prices[state.step].seconds;
  const int pieces = mine.polls[state.step] && !state.in_flight.empty() ? pieces_of(seconds) : 1;
  if (state.pieces_left < 0) {
    state.pieces_left = pieces;
    state.stretch_began = state.now;
    state.piece_seconds = seconds / pieces;
  } else {
    poll(actor);
    --state.pieces_left;
  }
  if (state.pieces_left == 0) {
    state.pieces_left = -1;
    end_step(actor, false);
    return true;
  }
  if (!state.in_flight.empty()) course_.hidden[static_cast<std::size_t>(actor)] += state.piece_seconds;
  state.now += state.piece_seconds;
  return true;
}

void Simulation::end_step(int actor, bool waiting) {
  State& state = states_[static_cast<std::size_t>(actor)];
  course_.stretches[static_cast<std::size_t>(actor)].push_back(
      {static_cast<int>(state.step), state.stretch_began, state.now, waiting});
  ++state.step;
  state.stretch_began = state.now;
}

void Simulation::start(int actor, int exchange) {
  State& state = states_[static_cast<std::size_t>(actor)];
  state.stretch_began = state.now;
  ExchangeEnds& ends = actors_[static_cast<std::size_t>(actor)].exchanges[static_cast<std::size_t>(exchange)];
  ends.started = state.now;
  ends.round = 0;
  if (ends.rounds.empty()) return;
  begin_round(actor, ends, state.now);
  state.in_flight.push_back(exchange);
}

void Simulation::begin_round(int actor, ExchangeEnds& exchange, double time) {
  Actor& mine = actors_[static_cast<std::size_t>(actor)];
  State& state = states_[static_cast<std::size_t>(actor)];
  exchange.round_began = time;
  const RoundEnds& round = exchange.rounds[static_cast<std::size_t>(exchange.round)];
  for (std::size_t i = round.first; i < round.last; ++i) {
    MessageEnd& end = mine.messages[i];
    const Link& link = link_of(end);
    if (!link.moves_alone) state.now += link.message_seconds;
    end.posted = link.moves_alone ? time : state.now;
    if (!end.is_send || !end.eager) continue;
    if (!link.moves_alone) state.now += end.bytes * link.sender_seconds_per_byte;
    put_on_wire(actor, end);
    end.done = end.posted;
  }
  state.has_news = true;
  if (round.is_collective)
    for (std::size_t other = 0; other < actors_.size(); ++other) wake(static_cast<int>(other));
}

/// The bytes leave when those before them have left, and are there a latency later.
void Simulation::put_on_wire(int actor, MessageEnd& end) {
  State& state = states_[static_cast<std::size_t>(actor)];
  const Link& link = link_of(end);
  const MessageEnd* other = other_end(end);
  const double ready = end.eager ? end.posted : std::max(end.posted, other ? other->answered : end.posted);
  const double begin = link.moves_alone ? ready : std::max(ready, state.now);
  const double seconds = end.bytes * end.link_share / link.bytes_per_second;
  if (end.inside && !link.moves_alone) {
    // A machine's ranks copy for themselves: only small messages come here.
    end.arrival = begin + link.latency_seconds;
    return;
  }
  state.link_free = std::max(state.link_free, begin) + seconds;
  end.arrival = state.link_free + link.latency_seconds;
}

const MessageEnd* Simulation::other_end(const MessageEnd& end) const {
  if (end.peer_actor < 0) return nullptr;
  return &actors_[static_cast<std::size_t>(end.peer_actor)].messages[static_cast<std::size_t>(end.peer_message)];
}

/// When looking after a message would bring it further; `never` if that depends on what others have not done yet.
double Simulation::next_event(const MessageEnd& end) const {
  const Link& link = link_of(end);
  const MessageEnd* other = other_end(end);
  // Hardware needs both ends, but nobody's answer.
  const double handshake = link.moves_alone ? 0 : link.latency_seconds;
  if (!other) return end.posted + link.latency_seconds + end.bytes / link.bytes_per_second;
  if (end.is_send) {
    if (end.arrival != never) return end.arrival - link.latency_seconds;
    if (end.inside && !link.moves_alone) return other->done + link.latency_seconds;
    return std::max(end.posted, other->answered + handshake);
  }
  if (end.eager || end.answered != never) return std::max(end.posted, other->arrival);
  return std::max(end.posted, other->posted + handshake);
}

void Simulation::settle_receive(int actor, MessageEnd& end) {
  State& state = states_[static_cast<std::size_t>(actor)];
  const Link& link = link_of(end);
  const MessageEnd* other = other_end(end);
  const double time = next_event(end);
  if (time > state.now) return;
  const bool is_copied = !other || (end.inside && !link.moves_alone);
  if (!is_copied && !end.eager && end.answered == never) {
    end.answered = link.moves_alone ? time : state.now;
    state.has_news = true;
    return;
  }
  const double wire_seconds = link.latency_seconds + end.bytes * end.link_share / link.bytes_per_second;
  if (!link.moves_alone)
    take_in(actor, is_copied ? state.now : other->arrival - wire_seconds, end.bytes * link.receiver_seconds_per_byte,
            link.message_seconds);
  end.done = link.moves_alone ? time : state.now;
  state.has_news = true;
}

/// The processor's part of receiving a message whose first bytes came at `begin`. A rank that waits takes bytes in
/// while others are on their way; one that computed meanwhile finds all of them when it looks.
void Simulation::take_in(int actor, double begin, double seconds, double message_seconds) {
  State& state = states_[static_cast<std::size_t>(actor)];
  const bool waits = std::holds_alternative<schedule::Finish>(
      actors_[static_cast<std::size_t>(actor)].schedule->steps[state.step].work);
  const double since = waits ? std::max(begin, state.stretch_began) : state.now;
  state.taken_until = std::max(since, state.taken_until) + seconds;
  state.now = std::max(state.now, state.taken_until) + message_seconds;
}

void Simulation::settle_send(int actor, MessageEnd& end) {
  State& state = states_[static_cast<std::size_t>(actor)];
  const Link& link = link_of(end);
  const double time = next_event(end);
  if (time > state.now) return;
  const bool was_sent = end.arrival != never || (end.inside && !link.moves_alone) || end.peer_actor < 0;
  if (!was_sent) {
    put_on_wire(actor, end);
    if (!link.moves_alone) state.now += end.bytes * link.sender_seconds_per_byte;
    state.has_news = true;
    return;
  }
  end.done = link.moves_alone ? time : state.now;
}

/// Brings one message as far as it goes now; returns when it was done.
double Simulation::settle(int actor, MessageEnd& end) {
  for (int i = 0; i < 2 && end.done == never; ++i) end.is_send ? settle_send(actor, end) : settle_receive(actor, end);
  return end.done;
}

/// A collective ends when all that take part have called it and its rounds are through.
double Simulation::collective_end(const ExchangeEnds& exchange) const {
  double last = 0;
  for (const Actor& actor : actors_) {
    for (const ExchangeEnds& other : actor.exchanges) {
      if (other.tag != exchange.tag) continue;
      if (other.round < exchange.round) return never;
      if (other.round == exchange.round) last = std::max(last, other.round_began);
    }
  }
  return last + exchange.rounds[static_cast<std::size_t>(exchange.round)].collective_seconds;
}

/// Takes an exchange as many rounds further as it goes now; true when it is done.
bool Simulation::advance_exchange(int actor, ExchangeEnds& exchange) {
  Actor& mine = actors_[static_cast<std::size_t>(actor)];
  State& state = states_[static_cast<std::size_t>(actor)];
  while (exchange.round < static_cast<int>(exchange.rounds.size())) {
    const RoundEnds& round = exchange.rounds[static_cast<std::size_t>(exchange.round)];
    double last = exchange.round_began;
    if (round.is_collective) {
      last = collective_end(exchange);
      if (last > state.now) return false;
    }
    bool all = true;
    for (std::size_t i = round.first; i < round.last; ++i) {
      const double done = mine.messages[i].done == never ? settle(actor, mine.messages[i]) : mine.messages[i].done;
      all = all && done <= state.now;
      if (done != never) last = std::max(last, done);
    }
    if (!all) return false;
    const bool alone = profile_.between.moves_alone;
    if (!alone) state.now += round.combination_seconds;
    ++exchange.round;
    if (exchange.round < static_cast<int>(exchange.rounds.size()))
      begin_round(actor, exchange, alone ? last + round.combination_seconds : state.now);
  }
  return true;
}

void Simulation::poll(int actor) {
  State& state = states_[static_cast<std::size_t>(actor)];
  if (state.in_flight.empty()) return;
  state.now += profile_.poll_seconds;
  std::vector<ExchangeEnds>& exchanges = actors_[static_cast<std::size_t>(actor)].exchanges;
  std::erase_if(state.in_flight,
                [&](int exchange) { return advance_exchange(actor, exchanges[static_cast<std::size_t>(exchange)]); });
}

double Simulation::next_event(int actor) const {
  const Actor& mine = actors_[static_cast<std::size_t>(actor)];
  const State& state = states_[static_cast<std::size_t>(actor)];
  double next = never;
  for (const int exchange : state.in_flight) {
    const ExchangeEnds& ends = mine.exchanges[static_cast<std::size_t>(exchange)];
    const RoundEnds& round = ends.rounds[static_cast<std::size_t>(ends.round)];
    if (round.is_collective) next = std::min(next, collective_end(ends));
    for (std::size_t i = round.first; i < round.last; ++i) {
      const MessageEnd& end = mine.messages[i];
      // What was done later than now, by hardware, counts when that time has come.
      if (end.done == never || end.done > state.now)
        next = std::min(next, end.done == never ? next_event(end) : end.done);
    }
  }
  return next;
}

/// True if the actor goes on by itself; false if it has to be woken.
bool Simulation::finish(int actor, int exchange) {
  State& state = states_[static_cast<std::size_t>(actor)];
  const auto waits = [&] {
    return std::find(state.in_flight.begin(), state.in_flight.end(), exchange) != state.in_flight.end();
  };
  poll(actor);
  if (!waits()) {
    end_step(actor, true);
    return true;
  }
  const double next = next_event(actor);
  if (next == never) {
    state.blocked = true;
    return false;
  }
  state.now = std::max(state.now, next);
  return true;
}

void Simulation::wake_listeners(int actor) {
  for (const int listener : actors_[static_cast<std::size_t>(actor)].listeners) wake(listener);
}

/// Lets an actor go on if something has happened that it waits for.
void Simulation::wake(int actor) {
  State& state = states_[static_cast<std::size_t>(actor)];
  if (!state.blocked) return;
  const double next = next_event(actor);
  if (next == never) return;
  state.blocked = false;
  state.now = std::max(state.now, next);
  push(actor);
}

/// Ends a wait that nobody can end: that of the actor that has waited longest.
void Simulation::force_one() {
  int longest = -1;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].ended) continue;
    if (longest < 0 || states_[i].now < states_[static_cast<std::size_t>(longest)].now) longest = static_cast<int>(i);
  }
  State& state = states_[static_cast<std::size_t>(longest)];
  ++course_.forced;
  Actor& mine = actors_[static_cast<std::size_t>(longest)];
  for (const int exchange : state.in_flight) {
    ExchangeEnds& ends = mine.exchanges[static_cast<std::size_t>(exchange)];
    RoundEnds& round = ends.rounds[static_cast<std::size_t>(ends.round)];
    round.is_collective = false;
    for (std::size_t i = round.first; i < round.last; ++i)
      mine.messages[i].done = std::min(mine.messages[i].done, state.now);
  }
  state.blocked = false;
  wake_listeners(longest);
  push(longest);
}

}  // namespace orthant::oracle
