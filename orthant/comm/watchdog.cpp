#include "orthant/comm/watchdog.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/attendance.hpp"
#include "orthant/comm/board.hpp"
#include "orthant/comm/failure.hpp"
#include "orthant/comm/hold.hpp"
#include "orthant/comm/job_files.hpp"
#include "orthant/comm/launch.hpp"
#include "orthant/comm/lifeline.hpp"
#include "orthant/comm/process.hpp"
#include "orthant/comm/run.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// The ranks of this machine that keep the others waiting.
std::string culprits_text(const Board& board) {
  std::string text;
  for (std::size_t i = 0; i < board.members().size(); ++i) {
    const auto [rank, pid] = board.members()[i];
    const bool stopped = is_stopped(pid);
    if (stopped || board.shown(i).empty())
      text += fmt::format("; rank {} (pid {}) {}", rank, pid, stopped ? "is stopped" : "computes or hangs");
  }
  return text;
}

/// Removes what the launcher would have removed had it not been killed.
void clean_up_after(pid_t launcher) {
  const char* job = std::getenv("PMIX_NAMESPACE");
  remove_job_files(launcher, job == nullptr ? "" : job);
}

// A signal handler can only reach globals.
std::atomic<int> terminate_wake{-1};
std::atomic<bool> terminate_asked{false};

void ask_to_terminate(int /*signal*/) {
  terminate_asked = true;
  eventfd_write(terminate_wake, 1);
}

}  // namespace

Watchdog::Watchdog(Options options)
    : options_(std::move(options)),
      timeout_(options_.timeout),
      launcher_pid_(getppid()),
      launcher_(open_process(launcher_pid_)),
      wake_(eventfd(0, EFD_CLOEXEC)) {
  terminate_wake = wake_;
  struct sigaction action {};
  action.sa_handler = ask_to_terminate;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, &old_action_);
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  sigaction(SIGTERM, &old_action_, nullptr);
  is_over_ = true;
  eventfd_write(wake_, 1);
  thread_.join();
  detach();
  close(wake_);
  if (launcher_ >= 0) close(launcher_);
}

void Watchdog::enter(const char* what, const Transfer* transfer) noexcept {
  const int depth = depth_.load(std::memory_order_relaxed);
  if (depth < static_cast<int>(frames_.size())) {
    Frame& frame = frames_[static_cast<std::size_t>(depth)];
    frame.what.store(what, std::memory_order_relaxed);
    frame.transfer.store(transfer, std::memory_order_relaxed);
  }
  if (depth == 0) {
    number_.store(number_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (Board* board = board_.load(std::memory_order_relaxed)) board->show(what);
  }
  depth_.store(depth + 1, std::memory_order_release);
}

void Watchdog::leave() noexcept {
  const int depth = depth_.load(std::memory_order_relaxed) - 1;
  depth_.store(depth);
  if (Board* board = board_.load(std::memory_order_relaxed); board != nullptr && depth == 0) board->show(nullptr);
  // What the watchdog may be printing right now must live until it has ended the job or decided not to.
  while (is_ending_.load()) std::this_thread::yield();
}

void Watchdog::attach(Lifeline& lifeline) {
  lifeline_ = &lifeline;
  eventfd_write(wake_, 1);
}

void Watchdog::attach(Board& board) {
  board_ = &board;
  if (board.members().size() < 2) return;
  const Neighbour& next = board.members()[board.next()];
  neighbour_ = open_process(next.pid);
  eventfd_write(wake_, 1);
}

void Watchdog::detach() {
  lifeline_ = nullptr;
  const int file = neighbour_.exchange(-1);
  if (file >= 0) close(file);
}

void Watchdog::watch() {
  std::uint64_t number = 0;
  milliseconds waited{};
  Clock::time_point last = Clock::now();
  while (true) {
    const milliseconds timeout = timeout_;
    const milliseconds period = std::clamp(timeout / 20, milliseconds(10), milliseconds(500));
    const Lifeline* lifeline = lifeline_;
    const std::array<int, 2> hosts = lifeline == nullptr ? std::array{-1, -1} : lifeline->files();
    std::array<pollfd, 5> files{{{wake_, POLLIN, 0},
                                 {neighbour_.load(), POLLIN, 0},
                                 {launcher_, POLLIN, 0},
                                 {hosts[0], POLLIN, 0},
                                 {hosts[1], POLLIN, 0}}};
    poll(files.data(), files.size(), static_cast<int>(period.count()));
    if (is_over_) return;
    if (files[0].revents != 0) {
      eventfd_t count = 0;
      eventfd_read(wake_, &count);
    }
    check_hosts();
    check_processes(files[1].revents != 0 && neighbour_.load() == files[1].fd, files[2].revents != 0);

    const Clock::time_point now = Clock::now();
    // A tick that took longer means that this process did not run, so the other ranks are not to blame for the wait.
    const milliseconds tick = std::min(std::chrono::duration_cast<milliseconds>(now - last), 2 * period);
    last = now;
    const bool is_same = depth_.load(std::memory_order_acquire) > 0 && number_.load() == number;
    waited = is_same ? waited + tick : milliseconds{};
    number = number_.load();
    if (waited >= timeout) end_wait(number, waited);
  }
}

void Watchdog::check_processes(bool neighbour_ended, bool launcher_ended) {
  if (launcher_ended) {
    clean_up_after(launcher_pid_);
    tell_launcher(Mark::leaving);
    _exit(static_cast<int>(Exit::internal));
  }
  if (terminate_asked) {
    // The launcher ends the ranks either because one of them or a host has ended or because it was told to. In the last
    // case all ranks are still alive now, and the pause gives all of them time to see that.
    if (has_ended(neighbour_) && !neighbour_was_told()) end_for_neighbour();
    if (Board* board = board_) board->take_leave();
    if (const Lifeline* lifeline = lifeline_) lifeline->take_leave();
    std::this_thread::sleep_for(milliseconds(100));
    check_hosts();
    tell_launcher(Mark::leaving);
    _exit(128 + SIGTERM);
  }
  if (neighbour_ended) end_for_neighbour();
}

void Watchdog::check_hosts() {
  Lifeline* lifeline = lifeline_;
  if (lifeline == nullptr) return;
  const std::array<int, 2> files = lifeline->files();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string loss = files[i] < 0 ? "" : lifeline->loss(files[i]);
    if (loss.empty()) continue;
    // Of the two machines beside the lost one, the next one speaks first.
    if (i == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
    if (board_.load()->claim()) print_error(loss);
    // mpirun notices the loss itself if it was started to (see launch.cpp) and nothing is under way to the lost host.
    // An abort would be, and mpirun would wait for its arrival for many minutes.
    std::this_thread::sleep_for(launched_on_hosts() ? link_timeout() : std::chrono::seconds(2));
    options_.end(Exit::watchdog);
  }
}

void Watchdog::end_wait(std::uint64_t number, milliseconds waited) {
  is_ending_ = true;
  if (depth_.load() == 0 || number_.load() != number) {
    is_ending_ = false;
    return;
  }
  Board* board = board_;
  if (board != nullptr && !board->claim()) {
    // Another rank prints this and ends the job.
    std::this_thread::sleep_for(std::chrono::seconds(3));
  } else {
    if (board == nullptr) let_rank_0_fail_first();
    print_error(fmt::format(
        "rank {}: waited {:.0f} s in {}{}; if they only need longer, set ORTHANT_WATCHDOG_SECONDS to more than {:g}",
        options_.rank, std::chrono::duration<double>(waited).count(), wait_text(),
        board == nullptr ? "" : culprits_text(*board), std::chrono::duration<double>(timeout_.load()).count()));
  }
  options_.end(Exit::watchdog);
}

std::string Watchdog::wait_text() const {
  std::string text;
  const int depth = std::min(depth_.load(), static_cast<int>(frames_.size()));
  for (int i = 0; i < depth; ++i) {
    const Frame& frame = frames_[static_cast<std::size_t>(i)];
    text += fmt::format("{}{}", i == 0 ? "" : ", ", frame.what.load());
    if (const Transfer* transfer = frame.transfer) text += ": " + transfer->outstanding();
  }
  return text;
}

/// Whether the neighbour ended because the launcher told it to: then something else failed, maybe on another machine.
bool Watchdog::neighbour_was_told() const {
  const Board& board = *board_.load();
  return board.has_left(board.next());
}

void Watchdog::end_for_neighbour() {
  Board& board = *board_.load();
  const auto [rank, pid] = board.members()[board.next()];
  if (!neighbour_was_told() && board.claim()) {
    print_error(
        fmt::format("rank {} (pid {}) ended without a message; if the job's exit code is 137, it was killed, often for "
                    "want of memory",
                    rank, pid));
  }
  release_launcher();
  // The launcher knows the exit code of that rank and is about to end this one. This is for launchers that do not.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  options_.end(Exit::internal);
  _exit(static_cast<int>(Exit::internal));
}

milliseconds watchdog_timeout() {
  const char* text = std::getenv("ORTHANT_WATCHDOG_SECONDS");
  if (text == nullptr || *text == '\0') return std::chrono::seconds(300);
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end != '\0' || !(seconds >= 0.1 && seconds <= 1e9))
    fail(Exit::usage, "ORTHANT_WATCHDOG_SECONDS is '{}'; use a number of seconds of at least 0.1, e.g. 300", text);
  return milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

}  // namespace orthant::comm
