#include "orthant/train/stop_signal.hpp"

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
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

bool StopSignal::asked() const { return stop_asked != 0; }

}  // namespace orthant::train
