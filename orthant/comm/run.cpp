#include "orthant/comm/run.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/alone.hpp"
#include "orthant/comm/attendance.hpp"
#include "orthant/comm/board.hpp"
#include "orthant/comm/failure.hpp"
#include "orthant/comm/hold.hpp"
#include "orthant/comm/launch.hpp"
#include "orthant/comm/lifeline.hpp"
#include "orthant/comm/mpi_comm.hpp"
#include "orthant/comm/version.hpp"
#include "orthant/comm/watchdog.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <thread>

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;

constexpr std::chrono::seconds fuse{3};
constexpr std::chrono::milliseconds start_timeout{60'000};

/// What the handler of std::terminate needs, which takes no arguments.
std::atomic<Board*> job_board{nullptr};

[[noreturn]] void leave_after_fuse(int code) {
  std::this_thread::sleep_for(fuse);
  _exit(code);
}

/// Calls MPI_Abort and, if that hangs, exits, after which the launcher ends the other ranks.
[[noreturn]] void abort_job(Exit exit) {
  const auto code = static_cast<int>(exit);
  release_launcher();
  int is_started = 0;
  MPI_Initialized(&is_started);
  if (is_started == 0) _exit(code);
  try {
    std::thread([code] { leave_after_fuse(code); }).detach();
  } catch (const std::system_error&) {
    _exit(code);
  }
  MPI_Abort(MPI_COMM_WORLD, code);
  leave_after_fuse(code);
}

/// Ends the job because of an error that only this rank knows.
[[noreturn]] void end_job(const Failure& failure) {
  Board* board = job_board;
  if (board == nullptr) let_rank_0_fail_first();
  // Another rank has printed an error and is ending the job.
  if (board != nullptr && !board->claim()) leave_after_fuse(static_cast<int>(failure.code));
  const Launched job = launched().value_or(Launched{});
  print_error(job.size > 1 ? fmt::format("rank {}: {}", job.rank, failure.message) : failure.message);
  abort_job(failure.code);
}

[[noreturn]] void end_job_on_terminate() {
  if (std::current_exception() == nullptr)
    end_job({Exit::internal, "unexpected: std::terminate without an exception; please report this"});
  try {
    throw;
  } catch (...) {
    end_job(current_failure());
  }
}

void start_mpi(const Launched& job) {
  int provided = 0;
  // Only the thread that calls run() communicates.
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  // Errors of calls that name no communicator go to the handler of this one.
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (provided < MPI_THREAD_FUNNELED) fail(Exit::does_not_fit, "this MPI does not support threads; use Open MPI");
  int size = 0;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (size != job.size) {
    fail(Exit::does_not_fit,
         "the launcher started {} ranks, but MPI knows of {}; use the launcher of Open MPI, which this program is "
         "built with",
         job.size, size);
  }
}

int run_body(MpiComm& comm, const std::function<int(Comm&)>& body) {
  try {
    return max(comm, body(comm));
  } catch (const CollectiveError& error) {
    if (comm.rank() == 0) print_error(error.what());
    return static_cast<int>(error.code());
  }
}

/// Collective. The exit code, the same on all ranks: `done` if all run the same program.
Exit check_program(Comm& comm) {
  try {
    check_same_program(comm, version_text());
    return Exit::done;
  } catch (const CollectiveError& error) {
    if (comm.rank() == 0) print_error(error.what());
    return error.code();
  }
}

int run_ranks(const Launched& job, const std::function<int(Comm&)>& body, const RunOptions& options) {
  tell_launcher(Mark::began);
  prepare_to_hold_launcher();
  std::unique_ptr<Board> board;
  std::unique_ptr<Lifeline> lifeline;
  const std::chrono::milliseconds timeout = watchdog_timeout();
  // A busy machine takes long to start the ranks, however short the timeout may be afterwards.
  Watchdog watchdog({.rank = job.rank, .timeout = std::max(timeout, start_timeout), .end = abort_job});
  std::unique_ptr<MpiComm> comm;
  try {
    {
      const Waiting waiting(&watchdog, "the start of MPI");
      start_mpi(job);
    }
    comm = std::make_unique<MpiComm>(options.piece_bytes, &watchdog);
    // Before anything else: other programs may not understand what is sent next.
    if (const Exit code = check_program(*comm); code != Exit::done) {
      tell_launcher(Mark::leaving);
      check_mpi(MPI_Finalize(), "MPI_Finalize");
      return static_cast<int>(code);
    }
    board = std::make_unique<Board>(*comm);
    job_board = board.get();
    watchdog.attach(*board);
    // From here on every rank is watched.
    comm->barrier();
    tell_launcher(Mark::watched);
    watchdog.set_timeout(timeout);
    lifeline = std::make_unique<Lifeline>(*comm);
    board->connect(*lifeline);
    watchdog.attach(*lifeline);
    if (!comm->share_among(board->members()) && board->me() == 0) {
      fmt::print(stderr,
                 "warning: the ranks of this machine may not open each other's files in /proc/PID/fd; MPI copies what "
                 "they could share, which is slower\n");
    }

    const int code = run_body(*comm, body);

    const Waiting waiting(&watchdog, "the end of MPI");
    watchdog.detach();
    comm->barrier();
    job_board = nullptr;
    tell_launcher_code(code);
    tell_launcher(Mark::leaving);
    release_launcher();
    check_mpi(MPI_Finalize(), "MPI_Finalize");
    return code;
  } catch (...) {
    // This has to happen while the board still exists.
    end_job(current_failure());
  }
}

}  // namespace

int run(const std::function<int(Comm&)>& body, const RunOptions& options) {
  const std::optional<Launched> job = launched();
  try {
    if (job) {
      std::set_terminate(end_job_on_terminate);
      return run_ranks(*job, body, options);
    }
    Alone alone;
    return body(alone);
  } catch (...) {
    const Failure failure = current_failure();
    if (job) end_job(failure);
    print_error(failure.message);
    return static_cast<int>(failure.code);
  }
}

void let_rank_0_fail_first() {
  const std::optional<Launched> job = launched();
  if (job && job->rank != 0) std::this_thread::sleep_for(std::chrono::seconds(2));
}

}  // namespace orthant::comm
