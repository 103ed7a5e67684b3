#pragma once

#include "orthant/base/error.hpp"
#include "orthant/comm/comm.hpp"

#include <csignal>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace orthant::comm {

class Board;
class Lifeline;

/// A thread that ends the job when this rank waits too long for the others, when its neighbour on the machine ends
/// without a message, when another host is lost, or when the launcher is gone. It makes no MPI call. The time that the
/// whole process is stopped does not count as waiting. SIGTERM, where nobody else handles it, ends this process through
/// it. One per process.
class Watchdog {
 public:
  struct Options {
    int rank = 0;
    std::chrono::milliseconds timeout{};
    /// Ends the job with this code, and does not return.
    std::function<void(base::Exit)> end;
  };

  explicit Watchdog(Options options);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// The thread of this rank begins to wait for something, which may be a transfer. Waits may be nested: the outermost
  /// one gives the name and starts the clock. Both arguments must live until leave().
  void enter(const char* what, const Transfer* transfer = nullptr) noexcept;
  void leave() noexcept;

  /// Sets how long a wait may last from now on.
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
  /// From now on this rank tells the others of the machine what it waits in, and watches the next one of them.
  void attach(Board& board);
  /// From now on it also watches the connections to other machines.
  void attach(Lifeline& lifeline);
  /// The job is about to end, so other ranks may end, too.
  void detach();

 private:
  struct Frame {
    std::atomic<const char*> what{nullptr};
    std::atomic<const Transfer*> transfer{nullptr};
  };

  void watch();
  /// Checks what happened to other processes, and ends this one if necessary.
  void check_processes(bool neighbour_ended, bool launcher_ended);
  /// Checks the connections to other machines, and ends this process if one is lost.
  void check_hosts();
  /// Prints and ends the job, unless the wait with this number is over.
  void end_wait(std::uint64_t number, std::chrono::milliseconds waited);
  [[nodiscard]] bool neighbour_was_told() const;
  [[noreturn]] void end_for_neighbour();
  [[nodiscard]] std::string wait_text() const;

  Options options_;
  std::atomic<std::chrono::milliseconds> timeout_;
  std::array<Frame, 4> frames_;  ///< from the outermost wait inwards
  std::atomic<int> depth_{0};
  std::atomic<std::uint64_t> number_{0};  ///< of the current outermost wait
  std::atomic<bool> is_ending_{false};
  std::atomic<Board*> board_{nullptr};
  std::atomic<Lifeline*> lifeline_{nullptr};
  std::atomic<int> neighbour_{-1};  ///< a pidfd
  pid_t launcher_pid_;
  int launcher_ = -1;               ///< a pidfd
  int wake_ = -1;                   ///< an eventfd
  struct sigaction old_action_ {};  ///< for SIGTERM
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

/// ORTHANT_WATCHDOG_SECONDS, or 300.
std::chrono::milliseconds watchdog_timeout();

/// A wait that lasts until the end of the scope. The watchdog may be null.
class Waiting {
 public:
  Waiting(Watchdog* watchdog, const char* what, const Transfer* transfer = nullptr) noexcept : watchdog_(watchdog) {
    if (watchdog_ != nullptr) watchdog_->enter(what, transfer);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (watchdog_ != nullptr) watchdog_->leave();
  }

 private:
  Watchdog* watchdog_;
};

}  // namespace orthant::comm
