#pragma once

#include "orthant/comm/shared_pages.hpp"
#include "orthant/comm/vote.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace orthant::comm {

class Watchdog;

/// A contiguous range of memory that is sent to or received from another rank.
struct Message {
  int peer = 0;
  void* data = nullptr;
  std::int64_t bytes = 0;
  int tag = 0;
  /// The bytes stay where they are, because the receiver can read them there; it is only told that they are complete.
  /// Both sides must agree on this. The `data` of the receiver is not used.
  bool announced = false;
};

enum class Number { float32, float64 };
std::int64_t bytes_of(Number type);

/// dst = src, or dst += src, of `count` numbers.
struct Combination {
  void* dst = nullptr;
  const void* src = nullptr;
  std::int64_t count = 0;
  Number type = Number::float32;
  bool accumulate = true;
};

/// A sum or a gathering that the communication library does itself. The order of its additions is the library's.
struct Collective {
  enum class Operation {
    all_reduce,      ///< dst (count) = the sum of src (count) of all
    reduce_scatter,  ///< dst (count) = this rank's part of the sum of src (count x ranks)
    all_gather       ///< dst (count x ranks) = src (count) of all in order; src is this rank's part of dst
  };
  Operation operation = Operation::all_reduce;
  std::vector<int> ranks{};  ///< this one included, in ascending order
  void* src = nullptr;
  void* dst = nullptr;
  std::int64_t count = 0;
  Number type = Number::float32;
};

/// Messages that begin together, or a collective. When all are done, the combinations are carried out in order.
struct Round {
  std::vector<Message> sends{}, receives{};
  std::vector<Combination> combinations{};
  std::optional<Collective> collective{};
};

/// What was sent. A collective counts as one message with the bytes that are handed to it.
struct Traffic {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;            ///< that moved
  std::int64_t announced_bytes = 0;  ///< that stayed where they were
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// Messages that are bound to memory once and exchanged again and again. From start() until test() returns true or
/// wait() returns, memory that is sent must not be written, and memory that is received must be neither read nor
/// written.
class Transfer {
 public:
  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  virtual ~Transfer() = default;

  /// Takes its place among the collectives of a group, which follow each other in this order whenever they start. Done
  /// for all rounds when the first of them starts, because that happens in the same order on all ranks.
  virtual void take_turn() {}
  /// Posts all messages and returns at once. The transfer must not be in flight.
  virtual void start() = 0;
  /// Makes progress; returns true if no message is in flight.
  virtual bool test() = 0;
  /// Returns when all messages are done.
  virtual void wait() = 0;
  /// Describes the messages that are not done. Another thread may call this while this one waits.
  [[nodiscard]] virtual std::string outstanding() const = 0;
};

class Rounds;

/// The ranks that take part in collectives of one kind.
struct CollectiveGroup {
  std::string kind;
  std::vector<int> ranks;
  auto operator<=>(const CollectiveGroup&) const = default;
};

/// How the values of all ranks become one.
enum class Reduction { sum, min, max };

/// The ranks of a job as seen by one of them. Only one thread of the rank may use it.
class Comm {
 public:
  Comm() = default;
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  virtual ~Comm() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Tags of bound messages are from 0 to this.
  [[nodiscard]] virtual int largest_tag() const { return std::numeric_limits<int>::max(); }

  /// Binds messages to memory. Between two ranks, messages with the same tag match in the order in which their
  /// transfers are started and, within a transfer, in the order given here. Both sides must give the same size;
  /// messages of no bytes are left out on both sides. Traffic is counted by `kind`; the transfer keeps the pointer.
  virtual std::unique_ptr<Transfer> bind(std::span<const Message> sends, std::span<const Message> receives,
                                         const char* kind) = 0;
  /// Binds rounds that follow each other: each starts when the one before it is done, in any call that waits, tests or
  /// makes progress. The groups of collectives must have been joined. Transfers must not outlive the Comm.
  std::unique_ptr<Transfer> bind(std::span<const Round> rounds, const char* kind);
  /// Collective among the ranks of each group: prepares for collectives. A rank gives all groups that it is in.
  virtual void join_groups(std::vector<CollectiveGroup> groups);

  /// How many ranks each machine has, in the order of ranks. Ranks of a machine that are not consecutive count as
  /// several machines.
  [[nodiscard]] virtual std::vector<int> ranks_per_machine() const {
    return std::vector<int>(static_cast<std::size_t>(size()), 1);
  }
  /// The ranks with which this one can share memory, which are those of its machine, in ascending order and including
  /// itself.
  [[nodiscard]] virtual std::vector<int> sharing_ranks() const { return {rank()}; }
  /// Replaces `memory`, which must consist of whole pages, by pages that those ranks can map; its contents are lost.
  /// Does nothing and returns nullptr if there is no rank to share it with.
  virtual std::unique_ptr<SharedPages> share(std::span<std::byte> memory);
  /// A read-only view of a range of the shared memory of one of those ranks.
  virtual SharedView view(int peer, const SharedPages::Place& place);
  /// Replaces `memory` by whole pages of the shared memory of one of those ranks.
  virtual void map(int peer, const SharedPages::Place& place, std::span<std::byte> memory);
  /// Makes progress with messages in flight and starts the rounds that follow; called between compute steps.
  void progress();
  /// The part of it that starts rounds. A rank that waits for one transfer must do so for the others, or it could keep
  /// the rank that it waits for waiting; `waited` is the one that it looks after itself.
  void advance(const Transfer* waited = nullptr);
  /// What bound messages have sent so far, by kind. A message is counted when it is started.
  [[nodiscard]] virtual std::map<std::string, Traffic> traffic() const = 0;

  /// A vote of all ranks, which may be under way while messages are exchanged. Collective calls and starts of votes
  /// must come in the same order on all ranks.
  virtual std::unique_ptr<Vote> make_vote() = 0;

  // The following are for set-up and reports, not for the training step.

  /// Collective. Sends the bytes of the root to all ranks.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  /// Collective. Returns the bytes of all ranks, whose sizes may differ, on the root, and an empty list on the others.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes, int root) = 0;
  /// Collective. Gathers equally many bytes of each rank, in the order of the ranks, on all ranks.
  virtual void all_gather(std::span<const std::byte> bytes, std::span<std::byte> all) = 0;
  /// Collective. Replaces the values of all ranks, of which there are equally many, by their reductions, item by item.
  /// In which order doubles are added is the library's choice; the result is the same on all ranks.
  virtual void all_reduce(std::span<std::int64_t> values, Reduction reduction) = 0;
  virtual void all_reduce(std::span<double> values, Reduction reduction) = 0;
  /// Collective.
  virtual void barrier() = 0;
  /// Blocking messages, which never match bound ones. send() returns when the memory may be used again, possibly only
  /// after the peer has received it.
  virtual void send(std::span<const std::byte> bytes, int peer) = 0;
  virtual void receive(std::span<std::byte> bytes, int peer) = 0;

  /// The watchdog of this rank, or nullptr if there is none.
  [[nodiscard]] virtual Watchdog* watchdog() { return nullptr; }

 protected:
  friend class Rounds;

  virtual std::unique_ptr<Transfer> bind(const Collective& collective, const char* kind);
  /// Lets the library look after its messages.
  virtual void make_progress() = 0;
  [[nodiscard]] std::span<Rounds* const> in_flight() const { return in_flight_; }

 private:
  std::vector<Rounds*> in_flight_;  ///< that have more than one round
};

/// Throws Error for messages that cannot be delivered because of a wrong peer, tag or size.
void check_messages(const Comm& comm, std::span<const Message> sends, std::span<const Message> receives,
                    const char* kind);
/// Throws Error for a rank that does not exist; `call` names the function in the message.
void check_root(const Comm& comm, int root, const char* call);
/// Throws Error for a peer that does not exist or is this rank.
void check_peer(const Comm& comm, int peer, const char* call);

}  // namespace orthant::comm
