#pragma once

#include "orthant/comm/comm.hpp"

#include <mpi.h>

namespace orthant::comm {

/// Votes by MPI_Iallreduce, which any call that makes progress with messages moves along.
class MpiVote final : public Vote {
 public:
  MpiVote(MPI_Comm comm, Watchdog* watchdog, int* in_flight);
  ~MpiVote() override;

  void start(unsigned mine) override;
  unsigned result() override;

 private:
  /// MPI keeps pointers to it.
  struct Ballot {
    unsigned mine = 0, any = 0;
  };

  MPI_Comm comm_;
  Watchdog* watchdog_;
  int* in_flight_;  ///< what makes the rank's polls call MPI
  std::unique_ptr<Ballot> ballot_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace orthant::comm
