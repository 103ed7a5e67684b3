#include "orthant/engine/shared_memory.hpp"

#include "orthant/base/error.hpp"

#include <algorithm>
#include <set>

namespace orthant::engine {
namespace {

using base::Exit;
using base::fail;
using comm::SharedPages;
using schedule::Transport;

template <class Item>
void send_list(comm::Comm& comm, int peer, const std::vector<Item>& list) {
  const std::size_t count = list.size();
  comm.send(std::as_bytes(std::span(&count, 1)), peer);
  comm.send(std::as_bytes(std::span(list)), peer);
}

template <class Item>
std::vector<Item> receive_list(comm::Comm& comm, int peer) {
  std::size_t count = 0;
  comm.receive(std::as_writable_bytes(std::span(&count, 1)), peer);
  std::vector<Item> list(count);
  comm.receive(std::as_writable_bytes(std::span(list)), peer);
  return list;
}

}  // namespace

SharedMemory::SharedMemory(const schedule::Schedule& schedule, const schedule::Placement& placement, std::byte* arena,
                           comm::Comm& comm)
    : schedule_(schedule), placement_(placement), arena_(arena), comm_(comm) {
  if (placement.shared_bytes == 0) return;
  pages_ = comm.share({arena, static_cast<std::size_t>(placement.shared_bytes)});
  if (!pages_) fail(Exit::internal, "rank {} has nobody to share memory with; please report this", comm.rank());
}

/// The ranks that read memory of this one, or it theirs. If one of two ranks lists the other, so does the other.
std::vector<int> SharedMemory::peers() const {
  std::set<int> ranks;
  for (const schedule::Exchange& exchange : schedule_.exchanges) {
    schedule::for_each_message(exchange, [&](const schedule::Message& message, bool /*is_receive*/) {
      if (message.transport == Transport::in_place) ranks.insert(message.peer);
    });
  }
  for (const schedule::Bucket& bucket : schedule_.buckets) ranks.insert(bucket.common.begin(), bucket.common.end());
  ranks.erase(comm_.rank());
  return {ranks.begin(), ranks.end()};
}

std::span<std::byte> SharedMemory::common_pages(const schedule::Bucket& bucket) const {
  const auto value = static_cast<std::size_t>(bucket.value);
  return {arena_ + placement_.offsets[value],
          static_cast<std::size_t>(schedule::whole_pages(schedule_.buffers[value].bytes))};
}

SharedPages::Place SharedMemory::place_of(std::span<const std::byte> memory) const {
  return pages_->place_of(memory.data(), static_cast<std::int64_t>(memory.size()));
}

/// What the peer reads here, and the common weights of which this rank is the first holder.
SharedMemory::Entries SharedMemory::entries_for(int peer) const {
  Entries entries;
  for (const schedule::Exchange& exchange : schedule_.exchanges) {
    schedule::for_each_message(exchange, [&](const schedule::Message& message, bool is_receive) {
      if (is_receive || message.peer != peer || message.transport != Transport::in_place) return;
      const std::byte* data = arena_ + placement_.offsets[static_cast<std::size_t>(message.buffer)];
      entries.push_back(
          {exchange.tag, place_of({data + message.offset_bytes, static_cast<std::size_t>(message.bytes)})});
    });
  }
  for (const schedule::Bucket& bucket : schedule_.buckets) {
    const bool concerns = std::find(bucket.common.begin(), bucket.common.end(), peer) != bucket.common.end();
    if (concerns && bucket.common.front() == comm_.rank())
      entries.push_back({bucket.tag, place_of(common_pages(bucket))});
  }
  return entries;
}

void SharedMemory::take(int peer, const Entries& entries) {
  const auto place = [&](int tag) {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& one) { return one.tag == tag; });
    if (found == entries.end())
      fail(Exit::disagreement, "rank {} does not share what rank {} reads (tag {}); do all ranks run the same plan?",
           peer, comm_.rank(), tag);
    return found->place;
  };
  for (const schedule::Exchange& exchange : schedule_.exchanges) {
    schedule::for_each_message(exchange, [&](const schedule::Message& message, bool is_receive) {
      if (is_receive && message.peer == peer && message.transport == Transport::in_place)
        views_.emplace(message.buffer, comm_.view(peer, place(exchange.tag)));
    });
  }
  for (const schedule::Bucket& bucket : schedule_.buckets) {
    if (bucket.common.empty() || bucket.common.front() != peer) continue;
    const std::span<std::byte> mine = common_pages(bucket);
    comm_.map(peer, place(bucket.tag), mine);
    pages_->give_back(place_of(mine));
  }
}

/// Every rank goes through its pairs in rising order, and within a pair the lower rank sends first. Pairs are thus
/// handled in one order of all pairs, so no ranks wait for each other in a circle.
void SharedMemory::connect() {
  for (const int peer : peers()) {
    const Entries mine = entries_for(peer);
    if (comm_.rank() < peer) send_list(comm_, peer, mine);
    take(peer, receive_list<Entry>(comm_, peer));
    if (comm_.rank() > peer) send_list(comm_, peer, mine);
  }
}

}  // namespace orthant::engine
