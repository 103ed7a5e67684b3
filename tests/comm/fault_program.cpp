// Fails in the way that its arguments ask for, while the other ranks wait.
// usage: fault_program [--ranks <n> <threads>] <fault> [<rank>]
#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/launch.hpp"
#include "orthant/comm/run.hpp"
#include "orthant/comm/watchdog.hpp"

#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace {

using namespace orthant;
using base::Exit;

void throw_in_noexcept() noexcept { base::fail(Exit::bad_data, "thrown in noexcept code"); }

[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// What the failing rank does.
const std::map<std::string, std::function<void()>>& faults() {
  static const std::map<std::string, std::function<void()>> all{
      {"none", [] {}},
      {"throw", [] { base::fail(Exit::bad_data, "the sample is bad"); }},
      {"bad_alloc", [] { throw std::bad_alloc(); }},
      {"noexcept", throw_in_noexcept},
      {"thread", [] { std::thread([] { base::fail(Exit::bad_data, "thrown in a thread"); }).join(); }},
      {"exit", [] { std::exit(3); }},
      {"abort", [] { std::abort(); }},
      {"kill", [] { std::raise(SIGKILL); }},
      {"stop", [] { std::raise(SIGSTOP); }},
      {"hang", sleep_for_ever},
  };
  return all;
}

/// A ring of messages, again and again; the failing rank fails in the third turn.
void exchange(comm::Comm& comm, const std::function<void()>& fault) {
  std::vector<float> sent(10'000);
  std::vector<float> received(sent.size());
  const comm::Message send = comm::message((comm.rank() + 1) % comm.size(), std::span(sent), 1);
  const comm::Message receive = comm::message((comm.rank() + comm.size() - 1) % comm.size(), std::span(received), 1);
  const auto transfer = comm.bind({&send, 1}, {&receive, 1}, "ring");
  for (int turn = 0; turn < 5; ++turn) {
    if (turn == 2) fault();
    transfer->start();
    const comm::Waiting waiting(comm.watchdog(), "turn of the ring");
    transfer->wait();
  }
}

int body(comm::Comm& comm, const std::string& fault, int failing_rank) {
  const bool fails = failing_rank < 0 || comm.rank() == failing_rank;
  if (fault == "agree") {
    comm::agree(comm, [&] {
      if (fails) base::fail(Exit::missing_input, "cannot open 'x.npy'");
    });
  } else if (fault == "on_root") {
    comm::on_root(comm, [] { base::fail(Exit::missing_input, "cannot open 'x.npy'"); });
  } else if (fault == "code") {
    return fails ? 87 : 0;
  } else if (fault == "wait") {
    fmt::print("rank {} of {}: {}\n", comm.rank(), comm.size(), comm::binding_text());
    std::fflush(stdout);
    sleep_for_ever();
  } else if (fault == "binding") {
    fmt::print("rank {} of {}: {}, {} threads\n", comm.rank(), comm.size(), comm::binding_text(),
               std::getenv("OMP_NUM_THREADS"));
  } else if (fault.starts_with("collective-")) {
    if (fails) faults().at(fault.substr(11))();
    comm.barrier();
  } else {
    exchange(comm, fails ? faults().at(fault) : faults().at("none"));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.at(0) == "--ranks") {
      if (!comm::launched())
        comm::launch({.count = std::stoi(words.at(1)), .threads = std::stoi(words.at(2))}, argc, argv);
      words.erase(words.begin(), words.begin() + 3);
    }
    if (words.at(0) == "early") base::fail(Exit::usage, "this happens before MPI is started");
  } catch (...) {
    const comm::Failure failure = comm::current_failure();
    comm::let_rank_0_fail_first();
    comm::print_error(failure.message);
    return static_cast<int>(failure.code);
  }
  const int failing_rank = words.size() > 1 ? std::stoi(words[1]) : -1;
  return comm::run([&](comm::Comm& comm) { return body(comm, words[0], failing_rank); });
}
