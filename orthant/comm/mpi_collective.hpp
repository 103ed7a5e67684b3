#pragma once

#include "orthant/comm/mpi_transfer.hpp"

namespace orthant::comm {

/// MPI's collectives of one communicator match in the order of calls, which must be the same on all ranks.
struct CollectiveTurns {
  std::int64_t taken = 0;  ///< turns that were given out
  std::int64_t next = 0;   ///< whose turn it is to call MPI
};

/// A non-blocking collective of MPI among the ranks of `setting.comm`. Counts must fit MPI's 31 bits.
class MpiCollective final : public Transfer {
 public:
  /// `turns` are those of the communicator, and must outlive it.
  MpiCollective(const MpiTransfer::Setting& setting, Collective collective, CollectiveTurns& turns);
  MpiCollective(const MpiCollective&) = delete;
  MpiCollective& operator=(const MpiCollective&) = delete;
  ~MpiCollective() override = default;

  void take_turn() override { turn_ = turns_.taken++; }
  void start() override;
  bool test() override;
  void wait() override;
  [[nodiscard]] std::string outstanding() const override;

 private:
  bool call_mpi();

  MpiTransfer::Setting setting_;
  Collective collective_;
  std::int64_t bytes_ = 0;  ///< that one start hands to MPI
  CollectiveTurns& turns_;
  std::int64_t turn_ = -1;
  bool waits_for_turn_ = false;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace orthant::comm
