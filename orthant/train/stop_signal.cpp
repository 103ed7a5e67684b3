#include "orthant/train/stop_signal.hpp"

#include "orthant/comm/attendance.hpp"
#include "orthant/comm/hold.hpp"

#include <cerrno>

namespace orthant::train {
namespace {

// A signal handler can reach nothing but globals.
volatile std::sig_atomic_t stop_asked = 0;
volatile std::sig_atomic_t interrupt_came = 0, terminate_came = 0;

void ask(int signal, siginfo_t* info, void* /*context*/) {
  stop_asked = 1;
  // A launcher may send it several times, to be sure.
  if (signal == SIGUSR1) return;
  const int before = errno;
  volatile std::sig_atomic_t& came = signal == SIGINT ? interrupt_came : terminate_came;
  if (comm::is_launcher(info->si_pid)) {
    comm::hold_launcher();
  } else if (came != 0) {
    struct sigaction end {};
    end.sa_handler = SIG_DFL;
    sigaction(signal, &end, nullptr);
    raise(signal);
  } else {
    came = 1;
  }
  errno = before;
}

}  // namespace

StopSignal::StopSignal() {
  for (volatile std::sig_atomic_t* flag : {&stop_asked, &interrupt_came, &terminate_came}) *flag = 0;
  struct sigaction action {};
  action.sa_sigaction = ask;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
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
