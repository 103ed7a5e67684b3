#include "tests/support/thread_comm.hpp"

#include "orthant/comm/rounds.hpp"
#include "tests/support/thread_world.hpp"

#include <unistd.h>

#include <cstring>
#include <numeric>
#include <thread>

namespace orthant::test {
namespace {

using base::Exit;
using base::fail;
using comm::Message;
using comm::Traffic;
using Clock = std::chrono::steady_clock;

constexpr std::byte in_flight{0xff};

/// Something that a rank waits for. A rank that waits for one thing moves its rounds along meanwhile.
class ThreadWait : public comm::Transfer {
 public:
  struct Owner {
    World& world;
    comm::Comm& comm;
    /// The rounds of the rank that are in flight.
    std::function<std::span<comm::Rounds* const>()> rounds;
    int rank;
    bool bound;
    const char* kind;
    Traffic& traffic;
  };

  explicit ThreadWait(Owner owner) : owner_(std::move(owner)) {}

  bool test() override {
    if (!is_active_) return true;
    owner_.world.delay(owner_.rank);
    {
      const auto guard = owner_.world.lock();
      owner_.world.end_if_failed();
      if (!is_matched()) {
        if (Clock::now() - started_ > owner_.world.timeout())
          fail(Exit::watchdog, "rank {} tests in vain: {}", owner_.rank, outstanding());
        std::this_thread::yield();
        return false;
      }
    }
    is_active_ = false;
    deliver();
    return true;
  }

  void wait() override {
    while (!test()) {
      {
        auto guard = owner_.world.lock();
        owner_.world.wait(owner_.rank, guard, {[this] { return can_go_on(); }, [this] { return outstanding(); }});
      }
      owner_.comm.advance();
    }
  }

 protected:
  /// Called under the world's lock.
  [[nodiscard]] virtual bool is_matched() const = 0;
  virtual void deliver() = 0;

  void begin() {
    is_active_ = true;
    started_ = Clock::now();
  }

  Owner owner_;
  bool is_active_ = false;

 private:
  /// True if this, or a round of the rank's, is over.
  [[nodiscard]] bool can_go_on() const {
    if (is_matched()) return true;
    const auto rounds = owner_.rounds();
    return std::any_of(rounds.begin(), rounds.end(), [](const comm::Rounds* one) {
      return static_cast<const ThreadWait&>(one->current()).is_matched();
    });
  }

  Clock::time_point started_{};
};

class ThreadTransfer final : public ThreadWait {
 public:
  ThreadTransfer(const Owner& owner, std::span<const Message> sends, std::span<const Message> receives)
      : ThreadWait(owner) {
    const auto post = [&](const Message& message, int source, int destination) {
      const auto bytes = static_cast<std::size_t>(message.bytes);
      const bool has_memory = !(message.announced && destination == owner.rank);
      return Post{.key = {owner.bound, source, destination, message.tag},
                  .memory = {static_cast<std::byte*>(message.data), has_memory ? bytes : 0},
                  .announced = message.announced,
                  .bytes = bytes};
    };
    for (const Message& message : sends)
      if (message.bytes > 0) sends_.push_back(post(message, owner.rank, message.peer));
    for (const Message& message : receives)
      if (message.bytes > 0) receives_.push_back(post(message, message.peer, owner.rank));
  }

  ~ThreadTransfer() override {
    if (!is_active_) return;
    {
      const auto guard = owner_.world.lock();
      for (const Post& post : sends_) owner_.world.withdraw(post);
      for (const Post& post : receives_) owner_.world.withdraw(post);
    }
    if (std::uncaught_exceptions() > 0) return;
    owner_.world.record(std::make_exception_ptr(base::Error(
        Exit::internal, fmt::format("rank {} destroys a transfer ({}) that is in flight", owner_.rank, owner_.kind))));
  }

  void start() override {
    if (is_active_) fail(Exit::internal, "rank {} starts a transfer ({}) that is in flight", owner_.rank, owner_.kind);
    for (Post& post : receives_) {
      std::fill(post.memory.begin(), post.memory.end(), in_flight);
      post.matched = false;
    }
    for (Post& post : sends_) {
      post.copy.assign(post.memory.begin(), post.memory.end());
      post.matched = false;
    }
    owner_.world.delay(owner_.rank);
    const auto guard = owner_.world.lock();
    owner_.world.end_if_failed();
    begin();
    for (Post& post : receives_) owner_.world.post_receive(post);
    for (Post& post : sends_) {
      owner_.world.post_send(post);
      ++owner_.traffic.messages;
      (post.announced ? owner_.traffic.announced_bytes : owner_.traffic.bytes) += static_cast<std::int64_t>(post.bytes);
    }
  }

  [[nodiscard]] std::string outstanding() const override {
    std::string text;
    const auto append = [&](const char* what, int peer, const Post& post) {
      if (post.matched) return;
      text += fmt::format("{}{} rank {} ({}, tag {}, {} bytes)", text.empty() ? "" : ", ", what, peer, owner_.kind,
                          post.key.tag, post.bytes);
    };
    for (const Post& post : receives_) append("no message from", post.key.source, post);
    for (const Post& post : sends_) append("no receive by", post.key.destination, post);
    return text;
  }

 private:
  [[nodiscard]] bool is_matched() const override {
    const auto matched = [](const Post& post) { return post.matched; };
    return std::all_of(sends_.begin(), sends_.end(), matched) &&
           std::all_of(receives_.begin(), receives_.end(), matched);
  }

  void deliver() override {
    for (Post& post : receives_) {
      if (std::any_of(post.memory.begin(), post.memory.end(), [](std::byte b) { return b != in_flight; })) {
        fail(Exit::internal, "rank {} wrote to memory that rank {} was sending to ({}, tag {})", owner_.rank,
             post.key.source, owner_.kind, post.key.tag);
      }
      std::memcpy(post.memory.data(), post.copy.data(), post.copy.size());
    }
    for (const Post& post : sends_) {
      if (std::memcmp(post.memory.data(), post.copy.data(), post.copy.size()) != 0) {
        fail(Exit::internal, "rank {} wrote to memory that it was sending to rank {} ({}, tag {})", owner_.rank,
             post.key.destination, owner_.kind, post.key.tag);
      }
    }
  }

  std::vector<Post> sends_, receives_;
};

/// A collective, whose sums are added in the order of ranks.
class ThreadCollective final : public ThreadWait {
 public:
  ThreadCollective(const Owner& owner, comm::Collective collective, std::size_t& calls)
      : ThreadWait(owner), collective_(std::move(collective)), calls_(calls) {}

  void take_turn() override { number_ = calls_++; }

  void start() override {
    if (is_active_) fail(Exit::internal, "rank {} starts a collective ({}) in flight", owner_.rank, owner_.kind);
    owner_.world.delay(owner_.rank);
    const auto guard = owner_.world.lock();
    owner_.world.end_if_failed();
    begin();
    Gathering& gathering = this->gathering();
    if (gathering.parts.empty()) gathering.call = collective_;
    if (gathering.call.operation != collective_.operation || gathering.call.count != collective_.count)
      fail(Exit::disagreement, "rank {} calls another collective ({}) than others do", owner_.rank, owner_.kind);
    const auto* src = static_cast<const std::byte*>(collective_.src);
    gathering.parts[owner_.rank].assign(src, src + given_bytes());
    ++owner_.traffic.messages;
    owner_.traffic.bytes += given_bytes();
    owner_.world.notify(collective_.ranks);
  }

  [[nodiscard]] std::string outstanding() const override {
    return fmt::format("a collective among {} ranks ({})", collective_.ranks.size(), owner_.kind);
  }

 private:
  using Operation = comm::Collective::Operation;

  [[nodiscard]] Gathering& gathering() const {
    return owner_.world.gathering({owner_.kind, collective_.ranks}, number_);
  }
  [[nodiscard]] std::int64_t part_bytes() const { return collective_.count * comm::bytes_of(collective_.type); }
  [[nodiscard]] std::int64_t given_bytes() const {
    const bool all = collective_.operation == Operation::reduce_scatter;
    return part_bytes() * (all ? static_cast<std::int64_t>(collective_.ranks.size()) : 1);
  }

  [[nodiscard]] bool is_matched() const override { return gathering().parts.size() == collective_.ranks.size(); }

  void deliver() override {
    const auto guard = owner_.world.lock();
    auto* dst = static_cast<std::byte*>(collective_.dst);
    const auto place = std::find(collective_.ranks.begin(), collective_.ranks.end(), owner_.rank);
    const std::int64_t first =
        collective_.operation == Operation::reduce_scatter ? (place - collective_.ranks.begin()) * part_bytes() : 0;
    std::int64_t next = 0;
    for (const auto& [rank, bytes] : gathering().parts) {
      const bool gathers = collective_.operation == Operation::all_gather;
      comm::combine({.dst = dst + (gathers ? next * part_bytes() : 0),
                     .src = bytes.data() + first,
                     .count = collective_.count,
                     .type = collective_.type,
                     .accumulate = !gathers && next > 0});
      ++next;
    }
  }

  comm::Collective collective_;
  std::size_t& calls_;  ///< of the rank, in this group
  std::size_t number_ = 0;
};

class ThreadVote final : public comm::Vote {
 public:
  ThreadVote(World& world, int rank, std::size_t& votes) : world_(world), rank_(rank), votes_(votes) {}

  void start(unsigned mine) override {
    if (is_active_) fail(Exit::internal, "rank {} starts a vote that is under way", rank_);
    is_active_ = true;
    number_ = votes_++;
    world_.start_vote(number_, mine);
  }
  unsigned result() override {
    if (!is_active_) fail(Exit::internal, "rank {} counts a vote that was not started", rank_);
    is_active_ = false;
    return world_.count_vote(rank_, number_);
  }

 private:
  World& world_;
  int rank_;
  std::size_t& votes_;
  std::size_t number_ = 0;
  bool is_active_ = false;
};

class ThreadComm final : public comm::Comm {
 public:
  ThreadComm(World& world, int rank) : world_(world), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_.ranks(); }
  [[nodiscard]] int largest_tag() const override { return world_.largest_tag(); }

  std::unique_ptr<comm::Transfer> bind(std::span<const Message> sends, std::span<const Message> receives,
                                       const char* kind) override {
    check_messages(*this, sends, receives, kind);
    return std::make_unique<ThreadTransfer>(owner(true, kind, traffic_[kind]), sends, receives);
  }
  using Comm::bind;
  void join_groups(std::vector<comm::CollectiveGroup> groups) override {
    for (comm::CollectiveGroup& group : groups) calls_.try_emplace(std::move(group), 0);
  }

  [[nodiscard]] std::vector<int> sharing_ranks() const override {
    std::vector<int> all(static_cast<std::size_t>(size()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::unique_ptr<comm::SharedPages> share(std::span<std::byte> memory) override {
    return size() < 2 || memory.empty() ? nullptr : std::make_unique<comm::SharedPages>(memory);
  }
  comm::SharedView view(int /*peer*/, const comm::SharedPages::Place& place) override { return {getpid(), place}; }
  void map(int /*peer*/, const comm::SharedPages::Place& place, std::span<std::byte> memory) override {
    comm::map_in_place(getpid(), place, memory);
  }
  [[nodiscard]] std::map<std::string, Traffic> traffic() const override { return traffic_; }

  std::unique_ptr<comm::Vote> make_vote() override { return std::make_unique<ThreadVote>(world_, rank_, votes_); }

  void broadcast(std::span<std::byte> bytes, int root) override {
    check_root(*this, root, "broadcast");
    const std::string call = fmt::format("broadcast of {} bytes from rank {}", bytes.size(), root);
    const auto round = world_.join(rank_, call, rank_ == root ? bytes : std::span<std::byte>());
    const std::vector<std::byte>& source = round->parts[static_cast<std::size_t>(root)];
    std::copy(source.begin(), source.end(), bytes.begin());
  }

  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes, int root) override {
    check_root(*this, root, "gather");
    const auto round = world_.join(rank_, fmt::format("gather to rank {}", root), bytes);
    return rank_ == root ? round->parts : std::vector<std::vector<std::byte>>();
  }

  void all_gather(std::span<const std::byte> bytes, std::span<std::byte> all) override {
    const auto round = world_.join(rank_, fmt::format("all_gather of {} bytes", bytes.size()), bytes);
    auto next = all.begin();
    for (const std::vector<std::byte>& part : round->parts) next = std::copy(part.begin(), part.end(), next);
  }

  void all_reduce(std::span<std::int64_t> values, comm::Reduction reduction) override { reduce(values, reduction); }
  void all_reduce(std::span<double> values, comm::Reduction reduction) override { reduce(values, reduction); }

  void barrier() override { world_.join(rank_, "barrier", {}); }

  void send(std::span<const std::byte> bytes, int peer) override {
    check_peer(*this, peer, "send");
    const Message message{
        .peer = peer, .data = const_cast<std::byte*>(bytes.data()), .bytes = static_cast<std::int64_t>(bytes.size())};
    exchange({&message, 1}, {}, "send");
  }

  void receive(std::span<std::byte> bytes, int peer) override {
    check_peer(*this, peer, "receive");
    const Message message{.peer = peer, .data = bytes.data(), .bytes = static_cast<std::int64_t>(bytes.size())};
    exchange({}, {&message, 1}, "receive");
  }

 private:
  std::unique_ptr<comm::Transfer> bind(const comm::Collective& collective, const char* kind) override {
    return std::make_unique<ThreadCollective>(owner(true, kind, traffic_[kind]), collective,
                                              calls_.at({kind, collective.ranks}));
  }
  void make_progress() override {}

  ThreadWait::Owner owner(bool bound, const char* kind, Traffic& traffic) {
    return {world_, *this, [this] { return in_flight(); }, rank_, bound, kind, traffic};
  }

  template <class T>
  void reduce(std::span<T> values, comm::Reduction reduction) {
    const std::string call = fmt::format("all_reduce {} of {} bytes", static_cast<int>(reduction), values.size_bytes());
    const auto round = world_.join(rank_, call, std::as_bytes(values));
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t rank = 0; rank < round->parts.size(); ++rank) {
        T one{};
        std::memcpy(&one, round->parts[rank].data() + i * sizeof(T), sizeof(T));
        values[i] = rank == 0                           ? one
                    : reduction == comm::Reduction::sum ? values[i] + one
                    : reduction == comm::Reduction::min ? std::min(values[i], one)
                                                        : std::max(values[i], one);
      }
    }
  }

  void exchange(std::span<const Message> sends, std::span<const Message> receives, const char* kind) {
    Traffic uncounted;
    ThreadTransfer transfer(owner(false, kind, uncounted), sends, receives);
    transfer.start();
    transfer.wait();
  }

  World& world_;
  int rank_;
  std::map<comm::CollectiveGroup, std::size_t> calls_;
  std::size_t votes_ = 0;  ///< started by this rank
  std::map<std::string, Traffic> traffic_;
};

void run_rank(World& world, int rank, const std::function<void(comm::Comm&)>& body) {
  ThreadComm comm(world, rank);
  try {
    body(comm);
  } catch (const Ended&) {
    // The rank that failed has recorded why.
  } catch (...) {
    world.record(std::current_exception());
  }
  world.finish(rank);
}

}  // namespace

void run_threads(int ranks, const std::function<void(comm::Comm&)>& body, const ThreadCommOptions& options) {
  World world(ranks, options);
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank) threads.emplace_back([&world, &body, rank] { run_rank(world, rank, body); });
  run_rank(world, 0, body);
  for (std::thread& thread : threads) thread.join();
  world.rethrow();
}

}  // namespace orthant::test
