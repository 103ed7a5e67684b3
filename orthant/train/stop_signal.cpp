#include "orthant/train/stop_signal.hpp"

#include "orthant/comm/attendance.hpp"

namespace orthant::train {
namespace {

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t stop_asked = 0;

void ask(int /*signal*/) { stop_asked = 1; }

}  // namespace

StopSignal::StopSignal() {
  stop_asked = 0;
  struct sigaction action {};
  action.sa_handler = ask;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
  // A launcher may send it several times, to be sure.
  action.sa_flags = 0;
  sigaction(SIGUSR1, &action, &user_);
  comm::tell_launcher(comm::Mark::obliging);
}

StopSignal::~StopSignal() {
  // Whoever asks when the run is over anyway must not kill it.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  if (is_answered_) interrupt_ = terminate_ = ignore;
  if (is_answered_ || user_.sa_handler == SIG_DFL) user_ = ignore;
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
  sigaction(SIGUSR1, &user_, nullptr);
}

bool StopSignal::asked() const { return stop_asked != 0; }

}  // namespace orthant::train
