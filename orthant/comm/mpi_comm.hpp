#pragma once

#include "orthant/comm/mpi_collective.hpp"
#include "orthant/comm/neighbours.hpp"

#include <mpi.h>

namespace orthant::comm {

/// Throws Error with the name of the call and the reason given by MPI unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// All ranks of MPI_COMM_WORLD. MPI must be initialised for as long as this object and its transfers live.
class MpiComm final : public Comm {
 public:
  /// Collective. Messages of more than `piece_bytes` are sent in pieces, because MPI counts in 31 bits. The value must
  /// be the same on all ranks.
  MpiComm(std::int64_t piece_bytes, Watchdog* watchdog);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int largest_tag() const override { return largest_tag_; }

  std::unique_ptr<Transfer> bind(std::span<const Message> sends, std::span<const Message> receives,
                                 const char* kind) override;
  using Comm::bind;
  void join_groups(std::vector<CollectiveGroup> groups) override;
  [[nodiscard]] std::vector<int> ranks_per_machine() const override { return ranks_per_machine_; }
  std::unique_ptr<SharedPages> share(std::span<std::byte> memory) override;
  [[nodiscard]] std::vector<int> sharing_ranks() const override;
  SharedView view(int peer, const SharedPages::Place& place) override;
  void map(int peer, const SharedPages::Place& place, std::span<std::byte> memory) override;
  [[nodiscard]] std::map<std::string, Traffic> traffic() const override { return traffic_; }

  std::unique_ptr<Vote> make_vote() override;

  void broadcast(std::span<std::byte> bytes, int root) override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes, int root) override;
  void all_gather(std::span<const std::byte> bytes, std::span<std::byte> all) override;
  void all_reduce(std::span<std::int64_t> values, Reduction reduction) override;
  void all_reduce(std::span<double> values, Reduction reduction) override;
  void barrier() override;
  void send(std::span<const std::byte> bytes, int peer) override;
  void receive(std::span<std::byte> bytes, int peer) override;

  [[nodiscard]] Watchdog* watchdog() override { return watchdog_; }

  /// Collective. From now on the ranks of this machine share memory. Returns false if they are not allowed to open each
  /// other's files; then all messages go through MPI.
  bool share_among(std::span<const Neighbour> neighbours);

 private:
  std::unique_ptr<Transfer> bind(const Collective& collective, const char* kind) override;
  void make_progress() override;
  [[nodiscard]] MpiTransfer::Setting setting(MPI_Comm comm, const char* kind);
  [[nodiscard]] const Neighbour& neighbour(int rank) const;
  /// The bytes of every rank that are gathered by one call.
  struct Turn {
    std::int64_t begin = 0, end = 0;
  };
  void gather_turn(std::span<const std::byte> bytes, const Turn& turn, int root,
                   std::vector<std::vector<std::byte>>& gathered);
  void all_reduce(std::span<std::byte> items, std::int64_t item_bytes, MPI_Datatype type, Reduction reduction);

  int rank_ = 0, size_ = 0, largest_tag_ = 0;
  std::int64_t piece_bytes_;
  Watchdog* watchdog_;
  MPI_Comm bound_ = MPI_COMM_NULL;     ///< carries transfers
  MPI_Comm blocking_ = MPI_COMM_NULL;  ///< carries all other messages, which must not match transfers
  std::vector<Neighbour> neighbours_;  ///< the ranks that share memory, including this one; empty if none do
  std::vector<int> ranks_per_machine_;
  int transfers_in_flight_ = 0;
  struct JoinedGroup {
    MPI_Comm comm = MPI_COMM_NULL;
    std::unique_ptr<CollectiveTurns> turns = std::make_unique<CollectiveTurns>();
  };
  std::map<CollectiveGroup, JoinedGroup> groups_;
  std::map<std::string, Traffic> traffic_;
};

}  // namespace orthant::comm
