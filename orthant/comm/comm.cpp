#include "orthant/comm/comm.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/rounds.hpp"

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;

void check_message(const Comm& comm, const Message& message, const char* kind) {
  if (message.bytes < 0) fail(Exit::internal, "{}: a message of {} bytes; please report this", kind, message.bytes);
  if (message.bytes == 0) return;
  check_peer(comm, message.peer, kind);
  if (message.data == nullptr && !message.announced)
    fail(Exit::internal, "{}: a message without memory; please report this", kind);
  if (message.tag < 0) fail(Exit::internal, "{}: tag {} is negative; please report this", kind, message.tag);
  if (message.tag > comm.largest_tag()) {
    fail(Exit::does_not_fit,
         "{}: a message needs tag {}, but this MPI has tags up to {}; use fewer micro-batches, or another transport of "
         "MPI",
         kind, message.tag, comm.largest_tag());
  }
}

}  // namespace

std::unique_ptr<Transfer> Comm::bind(std::span<const Round> rounds, const char* kind) {
  const bool is_simple = rounds.size() == 1 && rounds.front().combinations.empty() && !rounds.front().collective;
  if (is_simple) return bind(rounds.front().sends, rounds.front().receives, kind);
  return std::make_unique<Rounds>(*this, rounds, kind);
}

std::unique_ptr<Transfer> Comm::bind(const Collective& /*collective*/, const char* kind) {
  fail(Exit::internal, "{}: these ranks have no collectives; please report this", kind);
}

void Comm::join_groups(std::vector<CollectiveGroup> groups) {
  if (!groups.empty()) fail(Exit::internal, "these ranks have no collectives; please report this");
}

void Comm::advance(const Transfer* waited) {
  // One that ends leaves the list, and another takes its place.
  for (std::size_t i = 0; i < in_flight_.size();) {
    if (&in_flight_[i]->current() == waited || !in_flight_[i]->test()) ++i;
  }
}

void Comm::progress() {
  advance();
  make_progress();
}

std::unique_ptr<SharedPages> Comm::share(std::span<std::byte> /*memory*/) { return nullptr; }

SharedView Comm::view(int peer, const SharedPages::Place& /*place*/) {
  fail(Exit::internal, "rank {} shares no memory with rank {}; please report this", peer, rank());
}

void Comm::map(int peer, const SharedPages::Place& /*place*/, std::span<std::byte> /*memory*/) {
  fail(Exit::internal, "rank {} shares no memory with rank {}; please report this", peer, rank());
}

void check_messages(const Comm& comm, std::span<const Message> sends, std::span<const Message> receives,
                    const char* kind) {
  for (const Message& message : sends) check_message(comm, message, kind);
  for (const Message& message : receives) check_message(comm, message, kind);
}

void check_root(const Comm& comm, int root, const char* call) {
  if (root < 0 || root >= comm.size())
    fail(Exit::internal, "{}: there is no rank {} among {}; please report this", call, root, comm.size());
}

void check_peer(const Comm& comm, int peer, const char* call) {
  check_root(comm, peer, call);
  if (peer == comm.rank()) fail(Exit::internal, "{}: rank {} has a message to itself; please report this", call, peer);
}

}  // namespace orthant::comm
