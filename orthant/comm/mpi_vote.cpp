#include "orthant/comm/mpi_vote.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/mpi_comm.hpp"
#include "orthant/comm/watchdog.hpp"

namespace orthant::comm {

MpiVote::MpiVote(MPI_Comm comm, Watchdog* watchdog, int* in_flight)
    : comm_(comm), watchdog_(watchdog), in_flight_(in_flight), ballot_(std::make_unique<Ballot>()) {}

MpiVote::~MpiVote() {
  // A collective operation cannot be withdrawn. If one is in flight, this rank has failed and the job is about to end;
  // until then MPI may write to the ballot, and waiting for other ranks could last for ever.
  if (request_ != MPI_REQUEST_NULL) static_cast<void>(ballot_.release());
}

void MpiVote::start(unsigned mine) {
  if (request_ != MPI_REQUEST_NULL)
    base::fail(base::Exit::internal, "a vote is started before the last one is counted; please report this");
  ballot_->mine = mine;
  check_mpi(MPI_Iallreduce(&ballot_->mine, &ballot_->any, 1, MPI_UNSIGNED, MPI_BOR, comm_, &request_),
            "MPI_Iallreduce");
  ++*in_flight_;
}

unsigned MpiVote::result() {
  const Waiting waiting(watchdog_, "a vote of all ranks");
  check_mpi(MPI_Wait(&request_, MPI_STATUS_IGNORE), "MPI_Wait");
  --*in_flight_;
  return ballot_->any;
}

}  // namespace orthant::comm
