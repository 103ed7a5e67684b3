#include "orthant/comm/supervisor.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/failure.hpp"
#include "orthant/comm/job_files.hpp"
#include "orthant/comm/lifeline.hpp"
#include "orthant/comm/machine.hpp"
#include "orthant/comm/process.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

/// A busy machine takes long to start the ranks.
constexpr milliseconds most_to_start{60'000};
/// mpirun ends the other ranks in about two seconds.
constexpr milliseconds most_to_end{3'000}, most_to_end_later{10'000};

/// What Open MPI's mpirun returns after SIGTERM or SIGINT.
constexpr int code_of_mpirun_that_was_told = 1;
constexpr const char* when_starting = " while MPI started";

constexpr std::array passed_on{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

bool ends_job(int signal) { return signal != SIGUSR1 && signal != SIGUSR2; }

int code_of_status(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/// "signal 9 (Killed)" or "exit code 3", from the exit code of a job.
std::string cause_text(int code) {
  if (code <= 128 || code >= 128 + SIGRTMIN) return fmt::format("exit code {}", code);
  const char* hint = code == 128 + SIGKILL ? ", often for want of memory" : "";
  return fmt::format("signal {} ({}){}", code - 128, strsignal(code - 128), hint);
}

}  // namespace

Supervisor::Supervisor(SupervisedJob job) : job_(std::move(job)), attendance_(job_.ranks) {}

Supervisor::~Supervisor() {
  for (const Process& process : processes_)
    if (process.file >= 0) close(process.file);
  if (mpirun_.file >= 0) close(mpirun_.file);
  if (signal_file_ >= 0) close(signal_file_);
}

int Supervisor::run() {
  start_mpirun();
  Clock::time_point last = Clock::now();
  while (!mpirun_.ended) {
    const milliseconds period = !is_starting_ ? milliseconds(500) : milliseconds(age_ < seconds(5) ? 3 : 200);
    wait(period);
    // Time in which this process itself did not run is nobody's fault.
    const Clock::time_point now = Clock::now();
    const milliseconds tick = std::min(std::chrono::duration_cast<milliseconds>(now - last), 2 * period);
    last = now;
    age_ += tick;
    pass_on_signals();
    if (is_starting_) look_for_ranks();
    note_ends();
    if (is_starting_) check_start(tick);
    check_fuse(tick);
  }
  int status = 0;
  while (waitpid(mpirun_.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return conclude(status);
}

void Supervisor::start_mpirun() {
  sigset_t old;
  sigemptyset(&signals_);
  for (const int signal : passed_on) sigaddset(&signals_, signal);
  sigprocmask(SIG_BLOCK, &signals_, &old);
  signal_file_ = signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
  setenv(Attendance::variable, attendance_.address().c_str(), 1);
  std::vector<char*> words;
  for (std::string& word : job_.words) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t me = getpid();
  mpirun_.pid = fork();
  if (mpirun_.pid < 0) fail(Exit::does_not_fit, "cannot start '{}': {}", job_.mpirun, std::strerror(errno));
  if (mpirun_.pid == 0) {
    // Ctrl-C reaches this command alone, which passes it on once. If the command is killed, so is mpirun; the ranks see
    // it.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != me) _exit(1);
    sigprocmask(SIG_SETMASK, &old, nullptr);
    execv(job_.mpirun.c_str(), words.data());
    _exit(127);
  }
  mpirun_.file = open_process(mpirun_.pid);
  cleaner_.emplace(mpirun_.pid, attendance_.address());
}

void Supervisor::wait(Duration period) {
  std::vector<pollfd> files{{signal_file_, POLLIN, 0}, {mpirun_.file, POLLIN, 0}};
  for (const Process& process : processes_)
    if (!process.ended) files.push_back({process.file, POLLIN, 0});
  poll(files.data(), files.size(), static_cast<int>(period.count()));
}

void Supervisor::pass_on_signals() {
  signalfd_siginfo info{};
  while (read(signal_file_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const auto signal = static_cast<int>(info.ssi_signo);
    const bool is_second = ends_job(signal) && signal_ != 0;
    if (ends_job(signal)) signal_ = signal;
    // Two seconds after SIGTERM mpirun kills its ranks, whatever they save. SIGUSR1 it only passes on.
    const bool asks = ends_job(signal) && !is_second && all_oblige();
    signal_process(mpirun_.file, asks ? SIGUSR1 : signal);
    // Before the ranks run there is nothing to save, and who asks twice does not want to wait.
    if (is_second) set_fuse(milliseconds(500));
    if (is_starting_ && ends_job(signal)) set_fuse(milliseconds(1500));
  }
}

void Supervisor::look_for_ranks() {
  for (const pid_t pid : children_of(mpirun_.pid)) add_process(pid);
  for (int rank = 0; rank < job_.ranks; ++rank)
    if (const pid_t pid = attendance_.pid(rank); pid > 0) add_process(pid);
  for (Process& process : processes_) {
    for (int rank = 0; rank < job_.ranks && process.rank < 0; ++rank)
      if (attendance_.pid(rank) == process.pid) process.rank = rank;
    if ((process.rank >= 0 && !job_name_.empty()) || process.ended) continue;
    const std::string rank = variable_of(process.pid, "OMPI_COMM_WORLD_RANK");
    if (rank.empty()) continue;
    process.rank = std::clamp(std::atoi(rank.c_str()), 0, job_.ranks - 1);
    if (job_name_.empty()) job_name_ = variable_of(process.pid, "PMIX_NAMESPACE");
  }
}

void Supervisor::add_process(pid_t pid) {
  const bool known = std::any_of(processes_.begin(), processes_.end(), [&](const Process& p) { return p.pid == pid; });
  if (!known) processes_.push_back({.pid = pid, .file = open_process(pid)});
}

void Supervisor::note_ends() {
  if (has_ended(mpirun_.file)) mpirun_.ended = age_;
  // A process that could not be opened had ended by then.
  for (Process& process : processes_)
    if (!process.ended && (process.file < 0 || has_ended(process.file))) process.ended = age_;
  // On hosts mpirun starts other programs, too, and waits for other machines.
  if (first_lost() != nullptr && !job_.on_hosts) set_fuse(is_starting_ ? most_to_end : most_to_end_later);
  if (all_ended()) set_fuse(job_.on_hosts ? 3 * most_to_end_later + link_timeout() : most_to_end);
}

void Supervisor::check_start(Duration tick) {
  if (all_watch() || (job_.on_hosts && age_ > 2 * std::max(job_.timeout, most_to_start))) {
    is_starting_ = false;
    return;
  }
  if (code_ || signal_ != 0) return;
  const auto end_for = [&](const std::string& message) {
    print_error(message);
    code_ = static_cast<int>(Exit::watchdog);
    end_all();
  };
  const auto check_stopped = [&](Process& process) {
    process.stopped = is_stopped(process.pid) ? process.stopped + tick : Duration{};
    if (process.stopped < job_.timeout || code_) return;
    end_for(
        fmt::format("{} is stopped while MPI starts; nothing came from it for {:g} s. Let it continue, or set "
                    "ORTHANT_WATCHDOG_SECONDS to more",
                    name_of(process), std::chrono::duration<double>(process.stopped).count()));
  };
  check_stopped(mpirun_);
  for (Process& process : processes_)
    if (!process.ended) check_stopped(process);
  if (code_ || job_.on_hosts || age_ < std::max(job_.timeout, most_to_start)) return;
  for (int rank = 0; rank < job_.ranks; ++rank) {
    if (attendance_.has(rank, Mark::began)) continue;
    end_for(
        fmt::format("rank {} on host '{}' has not started in {:.0f} s; if it only needs longer, set "
                    "ORTHANT_WATCHDOG_SECONDS to more than {:g}",
                    rank, host_name(), std::chrono::duration<double>(age_).count(),
                    std::chrono::duration<double>(job_.timeout).count()));
    return;
  }
}

void Supervisor::set_fuse(Duration time) { fuse_ = fuse_ ? std::min(*fuse_, time) : time; }

void Supervisor::check_fuse(Duration tick) {
  if (!fuse_) return;
  *fuse_ -= tick;
  if (*fuse_ <= Duration{}) end_all();
}

bool Supervisor::all_watch() const {
  int watching = 0;
  for (int rank = 0; rank < job_.ranks; ++rank) watching += attendance_.has(rank, Mark::watched) ? 1 : 0;
  return watching >= job_.ranks_here && watching > 0;
}

bool Supervisor::all_oblige() const {
  int obliging = 0;
  for (int rank = 0; rank < job_.ranks; ++rank) obliging += attendance_.has(rank, Mark::obliging) ? 1 : 0;
  return obliging >= job_.ranks_here && obliging > 0;
}

bool Supervisor::all_ended() const {
  const auto ranks =
      std::count_if(processes_.begin(), processes_.end(), [](const Process& process) { return process.rank >= 0; });
  return ranks > 0 && ranks >= job_.ranks_here &&
         std::all_of(processes_.begin(), processes_.end(), [](const Process& process) { return process.ended; });
}

bool Supervisor::was_lost(const Process& process, std::optional<int> code) const {
  if (!process.ended) return false;
  if (process.rank < 0) return !job_.on_hosts;
  if (!attendance_.has(process.rank, Mark::leaving)) return true;
  // On another host one may have been lost.
  if (!code || job_.on_hosts) return false;
  const int said = attendance_.code(process.rank);
  return said >= 0 && said != *code;
}

const Supervisor::Process* Supervisor::first_lost(std::optional<int> code) const {
  const Process* first = nullptr;
  for (const Process& process : processes_)
    if (was_lost(process, code) && (first == nullptr || *process.ended < *first->ended)) first = &process;
  return first;
}

std::string Supervisor::name_of(const Process& process) const {
  const std::string place = fmt::format("(pid {}) on host '{}'", process.pid, host_name());
  if (&process == &mpirun_) return "mpirun " + place;
  int rank = process.rank;
  // mpirun starts the ranks in order, and this one ended before its number could be seen.
  if (rank < 0 && !job_.on_hosts)
    rank = static_cast<int>(std::count_if(processes_.begin(), processes_.end(),
                                          [&](const Process& other) { return other.pid < process.pid; }));
  return rank < 0 || rank >= job_.ranks ? "a rank " + place : fmt::format("rank {} {}", rank, place);
}

void Supervisor::end_all() {
  if (job_.on_hosts && !mpirun_.ended && fuse_.value_or(Duration{1}) > Duration{}) {
    // mpirun reaches the other machines. It may be stopped itself.
    signal_process(mpirun_.file, SIGCONT);
    signal_process(mpirun_.file, SIGTERM);
    set_fuse(most_to_end);
    return;
  }
  for (const Process& process : processes_) signal_process(process.file, SIGKILL);
  signal_process(mpirun_.file, SIGKILL);
}

int Supervisor::conclude(int status) {
  look_for_ranks();
  note_ends();
  const int code = code_.value_or(code_of_job(status));
  if (code == 0) return 0;
  if (!code_ && signal_ == 0 && !attendance_.any(Mark::spoke)) {
    const std::string why = why_nobody_knows(status, code);
    if (!why.empty()) print_error(why);
  }
  for (const pid_t pid : processes_with(Attendance::variable, attendance_.address()))
    if (pid != getpid()) kill(pid, SIGKILL);
  remove_job_files(mpirun_.pid, job_name_);
  return code_ || signal_ == 0 || !WIFSIGNALED(status) ? code : 128 + signal_;
}

/// What mpirun returns; but where it was told to end itself, and the ranks have left in order, what they return.
int Supervisor::code_of_job(int status) const {
  const int code = code_of_status(status);
  if (!WIFEXITED(status) || code != code_of_mpirun_that_was_told) return code;
  int said = -1;
  for (const Process& process : processes_) {
    if (process.rank < 0) continue;
    const int of_rank = attendance_.code(process.rank);
    if (of_rank < 0 || (said >= 0 && of_rank != said)) return code;
    said = of_rank;
  }
  return said <= 0 ? code : said;
}

/// Why the job ended with this code, if no rank of this machine printed it; empty if they ended as they should.
std::string Supervisor::why_nobody_knows(int status, int code) const {
  // What mpirun returns is the code of the first rank that failed, unless it was killed itself.
  if (const Process* lost = first_lost(WIFEXITED(status) ? std::optional(code) : std::nullopt)) {
    const bool was_killed = fuse_ && *fuse_ <= Duration{};
    return fmt::format("{} ended without a message{}{}", name_of(*lost), is_starting_ ? when_starting : "",
                       was_killed ? "" : ": " + cause_text(code));
  }
  return is_starting_ ? why_start_failed(status, code) : "";
}

/// The same for a job of which no rank is known to be lost, and which had not started.
std::string Supervisor::why_start_failed(int status, int code) const {
  const std::string cause = cause_text(code);
  if (job_.on_hosts)
    return code <= 128 ? "" : fmt::format("a rank on another host ended without a message{}: {}", when_starting, cause);
  if (WIFSIGNALED(status)) return fmt::format("{} ended{}: {}", name_of(mpirun_), when_starting, cause);
  const auto is_known = [](const Process& process) { return process.rank >= 0; };
  if (processes_.size() < static_cast<std::size_t>(job_.ranks_here) && !processes_.empty())
    return fmt::format("a rank on host '{}' ended without a message{}: {}", host_name(), when_starting, cause);
  if (std::any_of(processes_.begin(), processes_.end(), is_known)) return "";
  return fmt::format("mpirun ended before it had started a rank ({}); see what 'mpirun -np {} true' says", cause,
                     job_.ranks);
}

}  // namespace orthant::comm
