#pragma once

#include "orthant/comm/shared_pages.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace orthant::comm {

class Watchdog;

/// A contiguous piece of memory that goes to or comes from another rank.
struct Message {
  int peer = 0;
  void* data = nullptr;
  std::int64_t bytes = 0;
  int tag = 0;
  /// The bytes stay where they are, because the receiver can read them there: it is only told that they are complete.
  /// Both sides must say the same. The receiver's `data` is not used.
  bool announced = false;
};

/// What was sent.
struct Traffic {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;            ///< that moved
  std::int64_t announced_bytes = 0;  ///< that stayed where they were
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// Messages bound to memory once and exchanged again and again. From start() until test() is true or wait() returns,
/// what is sent must not be written, and what is received neither read nor written.
class Transfer {
 public:
  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  virtual ~Transfer() = default;

  /// Posts everything and returns at once. The last start must be done.
  virtual void start() = 0;
  /// Moves messages along; true once all are done, and whenever nothing is in flight.
  virtual bool test() = 0;
  /// Returns when all are done.
  virtual void wait() = 0;
  /// The messages that are not done, as text; another thread may ask while this one waits.
  [[nodiscard]] virtual std::string outstanding() const = 0;
};

/// The ranks of a job as one of them sees them. Used by one thread of the rank.
class Comm {
 public:
  Comm() = default;
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  virtual ~Comm() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Binds messages to memory. Between two ranks, messages with the same tag match in the order of their starts, and in
  /// the order given here within one. Both sides must give the same size; messages of no bytes are left out on both.
  /// `kind` is what they are counted under; the transfer keeps the pointer.
  virtual std::unique_ptr<Transfer> bind(std::span<const Message> sends, std::span<const Message> receives,
                                         const char* kind) = 0;
  /// The ranks with which this one can share memory, itself among them, in rising order: those of its machine.
  [[nodiscard]] virtual std::vector<int> sharing_ranks() const { return {rank()}; }
  /// Puts memory that those ranks can map in the place of `memory`: whole pages, whose contents are lost. nullptr, and
  /// nothing done, if there is nobody to share it with.
  virtual std::unique_ptr<SharedPages> share(std::span<std::byte> memory);
  /// A piece of the shared memory of one of those ranks, to read.
  virtual SharedView view(int peer, const SharedPages::Place& place);
  /// Puts a piece of the shared memory of one of those ranks, whole pages, in the place of `memory`.
  virtual void map(int peer, const SharedPages::Place& place, std::span<std::byte> memory);
  /// Lets the library move what is in flight: called between compute steps.
  virtual void progress() = 0;
  /// What bound messages have sent so far, by kind. A message counts when it is started.
  [[nodiscard]] virtual std::map<std::string, Traffic> traffic() const = 0;

  // For set-up and reports, not for the step.

  /// Collective. The root's bytes to all ranks.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  /// Collective. The bytes of all ranks, whose sizes may differ, to the root; nothing on the others.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes, int root) = 0;
  /// Collective. As many bytes of each rank, in the order of the ranks, to all.
  virtual void all_gather(std::span<const std::byte> bytes, std::span<std::byte> all) = 0;
  /// Collective.
  virtual void barrier() = 0;
  /// Returns when the memory may be used again, which may be only when the peer receives. Never match bound messages.
  virtual void send(std::span<const std::byte> bytes, int peer) = 0;
  virtual void receive(std::span<std::byte> bytes, int peer) = 0;

  /// What watches over long waits, if anything does.
  [[nodiscard]] virtual Watchdog* watchdog() { return nullptr; }
};

/// Refuses messages that no Comm could deliver: a wrong peer, tag or size.
void check_messages(const Comm& comm, std::span<const Message> sends, std::span<const Message> receives,
                    const char* kind);
/// Refuses a rank that does not exist; `call` names it in the message.
void check_root(const Comm& comm, int root, const char* call);
/// Refuses a peer that does not exist or is this rank.
void check_peer(const Comm& comm, int peer, const char* call);

}  // namespace orthant::comm
