#include "orthant/comm/mpi_comm.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/mpi_vote.hpp"
#include "orthant/comm/watchdog.hpp"

#include <algorithm>
#include <array>

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;

/// A duplicate of MPI_COMM_WORLD that returns error codes instead of aborting.
MPI_Comm duplicate_world() {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return comm;
}

int largest_tag_of(MPI_Comm comm) {
  int* largest = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&largest), &found), "MPI_Comm_get_attr");
  constexpr int at_least = 32767;  // says the standard
  return found != 0 ? *largest : at_least;
}

/// What a gather keeps at most besides its result.
constexpr std::int64_t gather_bytes = std::int64_t{64} << 20U;

/// Calls `move(begin, count)` for pieces whose size fits the 31-bit counts of MPI.
template <class Move>
void in_pieces(std::size_t bytes, std::int64_t piece_bytes, Move move) {
  const auto piece = static_cast<std::size_t>(piece_bytes);
  for (std::size_t begin = 0; begin < bytes; begin += piece)
    move(begin, static_cast<int>(std::min(piece, bytes - begin)));
}

MPI_Op op_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return MPI_SUM;
    case Reduction::min: return MPI_MIN;
    case Reduction::max: break;
  }
  return MPI_MAX;
}

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  int is_started = 0;
  MPI_Initialized(&is_started);
  // Before MPI_Init, asking MPI for the text of an error would end the process.
  if (is_started == 0) fail(Exit::io, "{}: error {} of MPI", call, code);
  std::array<char, MPI_MAX_ERROR_STRING> reason{};
  int length = 0;
  MPI_Error_string(code, reason.data(), &length);
  fail(Exit::io, "{}: {}", call, std::string_view(reason.data(), static_cast<std::size_t>(length)));
}

MpiComm::MpiComm(std::int64_t piece_bytes, Watchdog* watchdog)
    : piece_bytes_(piece_bytes), watchdog_(watchdog), bound_(duplicate_world()), blocking_(duplicate_world()) {
  check_mpi(MPI_Comm_rank(bound_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(bound_, &size_), "MPI_Comm_size");
  ranks_per_machine_ = comm::ranks_per_machine(*this);
  largest_tag_ = largest_tag_of(bound_);
}

bool MpiComm::share_among(std::span<const Neighbour> neighbours) {
  const bool can = can_open_files(*this, neighbours);
  if (can) neighbours_.assign(neighbours.begin(), neighbours.end());
  return can;
}

std::unique_ptr<SharedPages> MpiComm::share(std::span<std::byte> memory) {
  if (neighbours_.size() < 2 || memory.empty()) return nullptr;
  return std::make_unique<SharedPages>(memory);
}

std::unique_ptr<Transfer> MpiComm::bind(std::span<const Message> sends, std::span<const Message> receives,
                                        const char* kind) {
  check_messages(*this, sends, receives, kind);
  return std::make_unique<MpiTransfer>(setting(bound_, kind), sends, receives);
}

MpiTransfer::Setting MpiComm::setting(MPI_Comm comm, const char* kind) {
  return {.comm = comm,
          .piece_bytes = piece_bytes_,
          .kind = kind,
          .traffic = &traffic_[kind],
          .watchdog = watchdog_,
          .in_flight = &transfers_in_flight_,
          .owner = this};
}

/// All ranks take their groups in one order of all groups, so that no ranks wait for each other in a circle.
/// Collectives of one communicator match in the order of their calls, which is the same on all ranks for each kind.
void MpiComm::join_groups(std::vector<CollectiveGroup> groups) {
  std::sort(groups.begin(), groups.end());
  MPI_Group all = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(bound_, &all), "MPI_Comm_group");
  for (CollectiveGroup& one : groups) {
    if (groups_.contains(one)) continue;
    const Waiting waiting(watchdog_, "the start of a group of ranks");
    MPI_Group members = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    check_mpi(MPI_Group_incl(all, static_cast<int>(one.ranks.size()), one.ranks.data(), &members), "MPI_Group_incl");
    check_mpi(MPI_Comm_create_group(bound_, members, 0, &comm), "MPI_Comm_create_group");
    check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check_mpi(MPI_Group_free(&members), "MPI_Group_free");
    groups_[std::move(one)].comm = comm;
  }
  check_mpi(MPI_Group_free(&all), "MPI_Group_free");
}

std::unique_ptr<Transfer> MpiComm::bind(const Collective& collective, const char* kind) {
  const auto group = groups_.find({kind, collective.ranks});
  if (group == groups_.end())
    fail(Exit::internal, "{}: a collective of a group that was not joined; please report this", kind);
  return std::make_unique<MpiCollective>(setting(group->second.comm, kind), collective, *group->second.turns);
}

std::vector<int> MpiComm::sharing_ranks() const {
  if (neighbours_.empty()) return {rank_};
  std::vector<int> ranks;
  for (const Neighbour& one : neighbours_) ranks.push_back(one.rank);
  return ranks;
}

const Neighbour& MpiComm::neighbour(int rank) const {
  const Neighbour* found = find_neighbour(neighbours_, rank);
  if (!found) fail(Exit::internal, "rank {} shares no memory with rank {}; please report this", rank, rank_);
  return *found;
}

SharedView MpiComm::view(int peer, const SharedPages::Place& place) { return {neighbour(peer).pid, place}; }

void MpiComm::map(int peer, const SharedPages::Place& place, std::span<std::byte> memory) {
  map_in_place(neighbour(peer).pid, place, memory);
}

void MpiComm::make_progress() {
  // Without messages in flight there is nothing to move. Where ranks share processors, a call would even give this one
  // away.
  if (transfers_in_flight_ == 0) return;
  // Any call that looks for messages makes progress with all of them.
  int found = 0;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, blocking_, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

std::unique_ptr<Vote> MpiComm::make_vote() {
  return std::make_unique<MpiVote>(blocking_, watchdog_, &transfers_in_flight_);
}

void MpiComm::broadcast(std::span<std::byte> bytes, int root) {
  check_root(*this, root, "broadcast");
  const Waiting waiting(watchdog_, "a broadcast");
  in_pieces(bytes.size(), piece_bytes_, [&](std::size_t begin, int count) {
    check_mpi(MPI_Bcast(bytes.data() + begin, count, MPI_BYTE, root, blocking_), "MPI_Bcast");
  });
}

std::vector<std::vector<std::byte>> MpiComm::gather(std::span<const std::byte> bytes, int root) {
  check_root(*this, root, "gather");
  const Waiting waiting(watchdog_, "a gather");
  const auto mine = static_cast<std::int64_t>(bytes.size());
  std::vector<std::int64_t> sizes(rank_ == root ? static_cast<std::size_t>(size_) : 0);
  check_mpi(MPI_Gather(&mine, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, root, blocking_), "MPI_Gather");
  std::int64_t largest = rank_ == root ? *std::max_element(sizes.begin(), sizes.end()) : 0;
  check_mpi(MPI_Bcast(&largest, 1, MPI_INT64_T, root, blocking_), "MPI_Bcast");

  std::vector<std::vector<std::byte>> gathered(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) gathered[i].resize(static_cast<std::size_t>(sizes[i]));
  // In every turn each rank sends the next bytes that it has, so many that those of all ranks can be counted in 31
  // bits.
  const std::int64_t turn_bytes = std::max<std::int64_t>(std::min(piece_bytes_, gather_bytes) / size_, 1);
  for (std::int64_t begin = 0; begin < largest; begin += turn_bytes)
    gather_turn(bytes, {begin, begin + turn_bytes}, root, gathered);
  return gathered;
}

void MpiComm::gather_turn(std::span<const std::byte> bytes, const Turn& turn, int root,
                          std::vector<std::vector<std::byte>>& gathered) {
  const auto count_of = [&](std::size_t all) {
    return static_cast<int>(std::clamp(static_cast<std::int64_t>(all), turn.begin, turn.end) - turn.begin);
  };
  std::vector<int> counts;
  std::vector<int> places;
  int total = 0;
  for (const std::vector<std::byte>& part : gathered) {
    counts.push_back(count_of(part.size()));
    places.push_back(total);
    total += counts.back();
  }
  std::vector<std::byte> received(static_cast<std::size_t>(total));
  const int mine = count_of(bytes.size());
  const std::byte* first = mine > 0 ? bytes.data() + turn.begin : nullptr;
  check_mpi(
      MPI_Gatherv(first, mine, MPI_BYTE, received.data(), counts.data(), places.data(), MPI_BYTE, root, blocking_),
      "MPI_Gatherv");
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    if (counts[i] > 0) std::copy_n(received.begin() + places[i], counts[i], gathered[i].begin() + turn.begin);
  }
}

void MpiComm::all_gather(std::span<const std::byte> bytes, std::span<std::byte> all) {
  const auto count = static_cast<std::int64_t>(bytes.size());
  if (static_cast<std::int64_t>(all.size()) != count * size_ || count > piece_bytes_)
    fail(Exit::internal, "all_gather of {} bytes into {} on {} ranks; please report this", count, all.size(), size_);
  const Waiting waiting(watchdog_, "a gather to all ranks");
  check_mpi(MPI_Allgather(bytes.data(), static_cast<int>(count), MPI_BYTE, all.data(), static_cast<int>(count),
                          MPI_BYTE, blocking_),
            "MPI_Allgather");
}

void MpiComm::all_reduce(std::span<std::byte> items, std::int64_t item_bytes, MPI_Datatype type, Reduction reduction) {
  const Waiting waiting(watchdog_, "a reduction");
  in_pieces(items.size(), piece_bytes_ / item_bytes * item_bytes, [&](std::size_t begin, int count) {
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, items.data() + begin, count / static_cast<int>(item_bytes), type,
                            op_of(reduction), blocking_),
              "MPI_Allreduce");
  });
}

void MpiComm::all_reduce(std::span<std::int64_t> values, Reduction reduction) {
  all_reduce(std::as_writable_bytes(values), sizeof(std::int64_t), MPI_INT64_T, reduction);
}

void MpiComm::all_reduce(std::span<double> values, Reduction reduction) {
  all_reduce(std::as_writable_bytes(values), sizeof(double), MPI_DOUBLE, reduction);
}

void MpiComm::barrier() {
  const Waiting waiting(watchdog_, "a barrier");
  check_mpi(MPI_Barrier(blocking_), "MPI_Barrier");
}

void MpiComm::send(std::span<const std::byte> bytes, int peer) {
  check_peer(*this, peer, "send");
  const Waiting waiting(watchdog_, "a send");
  in_pieces(bytes.size(), piece_bytes_, [&](std::size_t begin, int count) {
    check_mpi(MPI_Send(bytes.data() + begin, count, MPI_BYTE, peer, 0, blocking_), "MPI_Send");
  });
}

void MpiComm::receive(std::span<std::byte> bytes, int peer) {
  check_peer(*this, peer, "receive");
  const Waiting waiting(watchdog_, "a receive");
  in_pieces(bytes.size(), piece_bytes_, [&](std::size_t begin, int count) {
    MPI_Status status{};
    int received = 0;
    check_mpi(MPI_Recv(bytes.data() + begin, count, MPI_BYTE, peer, 0, blocking_, &status), "MPI_Recv");
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &received), "MPI_Get_count");
    if (received != count)
      fail(Exit::disagreement, "rank {} sent {} bytes where {} were expected", peer, received, count);
  });
}

}  // namespace orthant::comm
