#pragma once

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/random.hpp"
#include "tests/support/thread_comm.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace orthant::test {

/// Leaves a rank whose world has failed elsewhere.
struct Ended {};

/// Messages with equal keys match in order. Blocking ones never match bound ones.
struct Key {
  bool bound;
  int source, destination, tag;
  auto operator<=>(const Key&) const = default;
};

/// One message of one side.
struct Post {
  Key key;
  std::span<std::byte> memory;
  std::vector<std::byte> copy{};  ///< a send's bytes as they were at start, or what arrived for a receive
  bool matched = false;
  bool announced = false;
  std::size_t bytes = 0;  ///< of the message, which has no memory of its own where it is announced and received
};

struct Channel {
  std::deque<Post*> sends, receives;  ///< those without a partner; at most one of the two has any
};

/// One collective call: complete when all ranks have arrived.
struct Round {
  std::string call{};
  int arrived = 0;
  std::vector<std::vector<std::byte>> parts;
};

struct VoteCount {
  int started = 0;
  unsigned any = 0;
};

/// One collective of a group: complete when all of its ranks have started it.
struct Gathering {
  comm::Collective call;
  std::map<int, std::vector<std::byte>> parts{};  ///< what each rank has given
};

/// What a rank is blocked in. The functions are called under the world's lock.
struct Wait {
  std::function<bool()> is_over;
  std::function<std::string()> text;
};

/// What the ranks share. All members are used under the lock.
class World {
 public:
  World(int ranks, const ThreadCommOptions& options)
      : changed_(static_cast<std::size_t>(ranks)),
        waits_(changed_.size()),
        delays_(changed_.size(), 0),
        finished_(changed_.size(), false),
        options_(options) {
    begin_round();
  }

  [[nodiscard]] int ranks() const { return static_cast<int>(changed_.size()); }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return options_.timeout; }
  [[nodiscard]] int largest_tag() const { return options_.largest_tag; }
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  void post_send(Post& post) {
    Channel& channel = channels_[post.key];
    if (channel.receives.empty()) return channel.sends.push_back(&post);
    match(post, *channel.receives.front());
    channel.receives.pop_front();
  }

  void post_receive(Post& post) {
    Channel& channel = channels_[post.key];
    if (channel.sends.empty()) return channel.receives.push_back(&post);
    match(*channel.sends.front(), post);
    channel.sends.pop_front();
  }

  void withdraw(const Post& post) {
    Channel& channel = channels_[post.key];
    std::erase(channel.sends, &post);
    std::erase(channel.receives, &post);
  }

  /// The `number`th collective of a group.
  Gathering& gathering(const comm::CollectiveGroup& group, std::size_t number) {
    std::deque<Gathering>& all = gatherings_[group];
    while (all.size() <= number) all.emplace_back();
    return all[number];
  }

  void notify(const std::vector<int>& ranks) {
    for (const int rank : ranks) changed_[static_cast<std::size_t>(rank)].notify_one();
  }

  void delay(int rank) {
    if (options_.delays == 0) return;
    const auto count = static_cast<std::uint64_t>(++delays_[static_cast<std::size_t>(rank)]);
    const std::uint64_t number = base::keyed(base::keyed(options_.delays, static_cast<std::uint64_t>(rank)), count);
    if (number % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(number / 4 % 300));
  }

  /// Blocks until the wait is over. All ranks blocked or finished for good is a deadlock: an Error at once.
  void wait(int rank, std::unique_lock<std::mutex>& lock, Wait wait) {
    Wait& mine = waits_[static_cast<std::size_t>(rank)];
    mine = std::move(wait);
    const auto is_over = [&] { return has_failed() || mine.is_over(); };
    std::string error;
    if (!is_over() && is_deadlocked()) {
      error = "all ranks wait: " + waits_text();
    } else if (!changed_[static_cast<std::size_t>(rank)].wait_for(lock, options_.timeout, is_over)) {
      error = fmt::format("rank {} waited {} ms: {}", rank, options_.timeout.count(), waits_text());
    }
    mine = {};
    if (!error.empty()) base::fail(base::Exit::watchdog, "{}", error);
    end_if_failed();
  }

  void end_if_failed() const {
    if (has_failed()) throw Ended{};
  }

  /// Gives `bytes` to the collective call that is under way, and returns it when all ranks have.
  std::shared_ptr<const Round> join(int rank, const std::string& call, std::span<const std::byte> bytes) {
    std::unique_lock guard(mutex_);
    end_if_failed();
    const std::shared_ptr<Round> round = round_;
    if (round->arrived == 0) round->call = call;
    if (round->call != call)
      base::fail(base::Exit::disagreement, "rank {} calls {}, but another rank calls {}", rank, call, round->call);
    round->parts[static_cast<std::size_t>(rank)].assign(bytes.begin(), bytes.end());
    if (++round->arrived == ranks()) {
      begin_round();
      for (std::condition_variable& changed : changed_) changed.notify_one();
      return round;
    }
    wait(rank, guard, {[&] { return round->arrived == ranks(); }, [&] { return "in " + call; }});
    return round;
  }

  /// Begins the vote with this number on one rank.
  void start_vote(std::size_t number, unsigned mine) {
    const std::lock_guard guard(mutex_);
    end_if_failed();
    if (votes_.size() <= number) votes_.resize(number + 1);
    ++votes_[number].started;
    votes_[number].any |= mine;
    for (std::condition_variable& changed : changed_) changed.notify_one();
  }

  unsigned count_vote(int rank, std::size_t number) {
    std::unique_lock guard(mutex_);
    wait(rank, guard, {[&] { return votes_[number].started == ranks(); }, [] { return "in a vote"; }});
    return votes_[number].any;
  }

  void record(std::exception_ptr failure) {
    const std::lock_guard guard(mutex_);
    if (!first_failure_) first_failure_ = std::move(failure);
    for (std::condition_variable& changed : changed_) changed.notify_one();
  }

  void finish(int rank) {
    const std::lock_guard guard(mutex_);
    finished_[static_cast<std::size_t>(rank)] = true;
    if (has_failed() || std::all_of(finished_.begin(), finished_.end(), [](bool f) { return f; }) || !is_deadlocked())
      return;
    first_failure_ = std::make_exception_ptr(
        base::Error(base::Exit::watchdog, fmt::format("rank {} has finished, but {}", rank, waits_text())));
    for (std::condition_variable& changed : changed_) changed.notify_one();
  }

  [[nodiscard]] bool has_failed() const { return first_failure_ != nullptr; }
  void rethrow() const {
    if (first_failure_) std::rethrow_exception(first_failure_);
  }

 private:
  void begin_round() {
    round_ = std::make_shared<Round>();
    round_->parts.resize(changed_.size());
  }

  void match(Post& send, Post& receive) {
    const auto& [bound, source, destination, tag] = send.key;
    if (send.bytes != receive.bytes) {
      base::fail(base::Exit::disagreement, "rank {} sends {} bytes to rank {}, which expects {} (tag {})", source,
                 send.bytes, destination, receive.bytes, tag);
    }
    if (send.announced != receive.announced)
      base::fail(base::Exit::disagreement, "rank {} and rank {} do not agree whether a message moves (tag {})", source,
                 destination, tag);
    if (!receive.announced) receive.copy = send.copy;
    send.matched = receive.matched = true;
    changed_[static_cast<std::size_t>(source)].notify_one();
    changed_[static_cast<std::size_t>(destination)].notify_one();
  }

  [[nodiscard]] bool is_deadlocked() const {
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      const bool is_stuck = finished_[i] || (waits_[i].is_over && !waits_[i].is_over());
      if (!is_stuck) return false;
    }
    return true;
  }

  [[nodiscard]] std::string waits_text() const {
    std::string text;
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      if (!waits_[i].is_over || waits_[i].is_over()) continue;
      text += fmt::format("{}rank {} waits: {}", text.empty() ? "" : "; ", i, waits_[i].text());
    }
    return text;
  }

  std::mutex mutex_;
  std::vector<std::condition_variable> changed_;  ///< per rank
  std::vector<Wait> waits_;                       ///< per rank
  std::vector<std::int64_t> delays_;              ///< per rank: how often it was delayed; only its thread uses it
  std::vector<bool> finished_;                    ///< per rank
  std::map<Key, Channel> channels_;
  std::map<comm::CollectiveGroup, std::deque<Gathering>> gatherings_;
  std::shared_ptr<Round> round_;
  std::vector<VoteCount> votes_;  ///< in the order in which every rank starts them
  std::exception_ptr first_failure_;
  ThreadCommOptions options_;
};

}  // namespace orthant::test
