#pragma once

#include "orthant/comm/attendance.hpp"
#include "orthant/comm/cleaner.hpp"

#include <csignal>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace orthant::comm {

/// A job that mpirun is to run.
struct SupervisedJob {
  std::string mpirun{};  ///< path
  std::vector<std::string> words{};
  int ranks = 1;
  int ranks_here = 1;                   ///< of these, on this machine
  bool on_hosts = false;                ///< some ranks may be on other machines
  std::chrono::milliseconds timeout{};  ///< how long a process may be stopped while the ranks start
};

/// Runs mpirun and stays beside it: passes on signals, sees ranks that end or are stopped before they watch each other,
/// and ends what does not end by itself, with one line that says what happened if no rank did. At most once per
/// process.
class Supervisor {
 public:
  explicit Supervisor(SupervisedJob job);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  /// Returns the exit code of the job once nothing of it is left. Throws Error if mpirun cannot be started.
  int run();

 private:
  using Duration = std::chrono::milliseconds;
  struct Process {
    pid_t pid = 0;
    int file = -1;  ///< a pidfd
    int rank = -1;  ///< -1: not known yet
    Duration stopped{};
    std::optional<Duration> ended{};  ///< when it was seen, from the start of the job
  };

  void start_mpirun();
  /// Sleeps until something happens, at most so long.
  void wait(Duration period);
  void pass_on_signals();
  /// Finds the ranks among the processes that mpirun has started.
  void look_for_ranks();
  void add_process(pid_t pid);
  void note_ends();
  /// While the ranks start: ends the job for a process that is stopped, or that does not come.
  void check_start(Duration tick);
  /// Ends the job when what is left of it must not last longer.
  void check_fuse(Duration tick);
  void set_fuse(Duration time);
  [[nodiscard]] bool all_watch() const;
  [[nodiscard]] bool all_oblige() const;
  [[nodiscard]] bool all_ended() const;
  /// The first process that ended though nobody told it to: before it was about to leave or, where the exit code of the
  /// job is known, not with the one with which it was leaving.
  [[nodiscard]] const Process* first_lost(std::optional<int> code = std::nullopt) const;
  [[nodiscard]] bool was_lost(const Process& process, std::optional<int> code) const;
  [[nodiscard]] std::string name_of(const Process& process) const;
  void end_all();
  /// Prints the line of the job, unless somebody has, and returns its exit code.
  int conclude(int status);
  [[nodiscard]] int code_of_job(int status) const;
  [[nodiscard]] std::string why_nobody_knows(int status, int code) const;
  [[nodiscard]] std::string why_start_failed(int status, int code) const;

  SupervisedJob job_;
  Attendance attendance_;
  Process mpirun_;
  std::vector<Process> processes_;
  std::optional<Cleaner> cleaner_;
  std::string job_name_;  ///< Open MPI's
  sigset_t signals_{};
  int signal_file_ = -1;
  int signal_ = 0;  ///< the last one that is to end the job
  bool is_starting_ = true;
  Duration age_{};
  std::optional<Duration> fuse_;
  std::optional<int> code_;  ///< of a line that was printed here
};

}  // namespace orthant::comm
