#include "orthant/comm/mpi_collective.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/mpi_comm.hpp"
#include "orthant/comm/watchdog.hpp"

#include <limits>
#include <utility>

namespace orthant::comm {

using base::Exit;
using base::fail;
using Operation = Collective::Operation;

MpiCollective::MpiCollective(const MpiTransfer::Setting& setting, Collective collective, CollectiveTurns& turns)
    : setting_(setting), collective_(std::move(collective)), turns_(turns) {
  const auto ranks = static_cast<std::int64_t>(collective_.ranks.size());
  if (collective_.count < 0 || collective_.count > std::numeric_limits<int>::max() / ranks)
    fail(Exit::does_not_fit,
         "{}: {} numbers on each of {} ranks are more than a collective of MPI takes; use another form of exchange",
         setting.kind, collective_.count, ranks);
  const bool gives_all = collective_.operation == Operation::reduce_scatter;
  bytes_ = collective_.count * bytes_of(collective_.type) * (gives_all ? ranks : 1);
}

void MpiCollective::start() {
  if (request_ != MPI_REQUEST_NULL || waits_for_turn_)
    fail(Exit::internal, "{}: a collective is started that is in flight; please report this", setting_.kind);
  waits_for_turn_ = true;
  ++*setting_.in_flight;
  call_mpi();
}

/// True if MPI has been called, now or before.
bool MpiCollective::call_mpi() {
  if (!waits_for_turn_) return true;
  if (turns_.next != turn_) return false;
  waits_for_turn_ = false;
  ++turns_.next;
  const auto& [operation, ranks, src, dst, numbers, number] = collective_;
  const int count = static_cast<int>(numbers);
  MPI_Datatype type = number == Number::float32 ? MPI_FLOAT : MPI_DOUBLE;
  switch (operation) {
    case Operation::all_reduce:
      check_mpi(MPI_Iallreduce(src, dst, count, type, MPI_SUM, setting_.comm, &request_), "MPI_Iallreduce");
      break;
    case Operation::reduce_scatter:
      check_mpi(MPI_Ireduce_scatter_block(src, dst, count, type, MPI_SUM, setting_.comm, &request_),
                "MPI_Ireduce_scatter_block");
      break;
    case Operation::all_gather:
      check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, type, dst, count, type, setting_.comm, &request_), "MPI_Iallgather");
      break;
  }
  ++setting_.traffic->messages;
  setting_.traffic->bytes += bytes_;
  return true;
}

bool MpiCollective::test() {
  if (!call_mpi()) return false;
  if (request_ == MPI_REQUEST_NULL) return true;
  int done = 0;
  check_mpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done != 0) --*setting_.in_flight;
  return done != 0;
}

void MpiCollective::wait() {
  if (test()) return;
  const Waiting waiting(setting_.watchdog, setting_.kind, this);
  while (!test()) setting_.owner->advance(this);
}

std::string MpiCollective::outstanding() const {
  return fmt::format("a collective of MPI among {} ranks ({} to {})", collective_.ranks.size(),
                     collective_.ranks.front(), collective_.ranks.back());
}

}  // namespace orthant::comm
