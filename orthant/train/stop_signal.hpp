#pragma once

#include <csignal>

namespace orthant::train {

/// While it lives, SIGINT, SIGTERM and SIGUSR1 ask for a stop after the current step instead of ending the process. A
/// second SIGINT or SIGTERM ends it.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();
  [[nodiscard]] bool asked() const;
  /// All ranks stop, whichever of them was asked. Those that are asked later than others ignore it from the end of this
  /// on.
  void answer() { is_answered_ = true; }

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
  struct sigaction user_ {};
  bool is_answered_ = false;
};

}  // namespace orthant::train
