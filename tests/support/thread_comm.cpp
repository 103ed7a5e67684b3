#include "tests/support/thread_comm.hpp"

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

class ThreadTransfer final : public comm::Transfer {
 public:
  struct Owner {
    World& world;
    int rank;
    bool bound;
    const char* kind;
    Traffic& traffic;
  };

  ThreadTransfer(const Owner& owner, std::span<const Message> sends, std::span<const Message> receives)
      : owner_(owner) {
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
    const auto guard = owner_.world.lock();
    owner_.world.end_if_failed();
    is_active_ = true;
    started_ = Clock::now();
    for (Post& post : receives_) owner_.world.post_receive(post);
    for (Post& post : sends_) {
      owner_.world.post_send(post);
      ++owner_.traffic.messages;
      (post.announced ? owner_.traffic.announced_bytes : owner_.traffic.bytes) += static_cast<std::int64_t>(post.bytes);
    }
  }

  bool test() override {
    if (!is_active_) return true;
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
    deliver();
    return true;
  }

  void wait() override {
    if (!is_active_) return;
    {
      auto guard = owner_.world.lock();
      owner_.world.wait(owner_.rank, guard, {[this] { return is_matched(); }, [this] { return outstanding(); }});
    }
    deliver();
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
  [[nodiscard]] bool is_matched() const {
    const auto matched = [](const Post& post) { return post.matched; };
    return std::all_of(sends_.begin(), sends_.end(), matched) &&
           std::all_of(receives_.begin(), receives_.end(), matched);
  }

  void deliver() {
    is_active_ = false;
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

  Owner owner_;
  std::vector<Post> sends_, receives_;
  bool is_active_ = false;
  Clock::time_point started_{};
};

class ThreadVote final : public comm::Vote {
 public:
  ThreadVote(World& world, int rank, std::size_t& votes) : world_(world), rank_(rank), votes_(votes) {}

  void start(bool mine) override {
    if (is_active_) fail(Exit::internal, "rank {} starts a vote that is under way", rank_);
    is_active_ = true;
    number_ = votes_++;
    world_.start_vote(number_, mine);
  }
  bool result() override {
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
    return std::make_unique<ThreadTransfer>(ThreadTransfer::Owner{world_, rank_, true, kind, traffic_[kind]}, sends,
                                            receives);
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
  void progress() override {}
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
    ThreadTransfer transfer({world_, rank_, false, kind, uncounted}, sends, receives);
    transfer.start();
    transfer.wait();
  }

  World& world_;
  int rank_;
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
