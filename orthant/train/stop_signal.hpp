#pragma once

#include <csignal>

namespace orthant::train {

/// While it lives, SIGINT and SIGTERM ask for a stop after the current step instead of ending the process; a second
/// one ends it.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();
  [[nodiscard]] bool asked() const;

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

}  // namespace orthant::train
