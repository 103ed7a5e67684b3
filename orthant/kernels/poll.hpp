#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <utility>

namespace orthant::kernels {

/// Something to be done from time to time while long kernels run: messages do not move by themselves. Kernels call it
/// between blocks of work, in every thread; only the thread that called the kernel does something.
class Poll {
 public:
  explicit Poll(std::function<void()> work) : work_(std::move(work)) {}

  void operator()(int thread) {
    if (thread != 0 || failure_) return;
    const Clock::time_point now = Clock::now();
    if (now - last_ < interval) return;
    try {
      work_();
    } catch (...) {
      failure_ = std::current_exception();  // nothing may leave a parallel region
    }
    last_ = Clock::now();
  }

  /// Throws what the work has thrown, if anything.
  void rethrow() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// Short against a message of 100 KiB on a fast network, long against a call that finds nothing.
  static constexpr std::chrono::microseconds interval{100};

  std::function<void()> work_;
  Clock::time_point last_{};
  std::exception_ptr failure_;
};

}  // namespace orthant::kernels
