#include "orthant/comm/reach.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/command.hpp"
#include "orthant/comm/failure.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <thread>

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;

constexpr std::chrono::seconds patience{20};
constexpr std::size_t most_at_a_time = 32;
/// Exit codes of the question; launch agents use 255.
constexpr int no_folder = 121;
constexpr int no_program = 122;

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// For a shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// What the shell of a host is asked. `nproc` would believe OMP_NUM_THREADS.
std::string question(const Expectation& expected) {
  const std::string program = quoted(expected.program);
  return fmt::format(
      "cd {} || exit {}; test -x {} || exit {}; {} --version && env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc",
      quoted(expected.folder), no_folder, program, no_program, program);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

/// The hardware threads of a host that answered well. Shells may print more than they were asked for.
std::optional<int> processors_in(const std::vector<std::string>& lines) {
  int number = 0;
  if (lines.empty()) return std::nullopt;
  const std::string& last = lines.back();
  const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), number);
  if (error != std::errc() || end != last.data() + last.size() || number < 1) return std::nullopt;
  return number;
}

std::optional<int> judge(const Host& host, const Answer& answer, const Expectation& expected,
                         const std::string& agent) {
  const std::vector<std::string> lines = lines_of(answer.text);
  if (answer.code == no_folder)
    fail(Exit::missing_input, "host '{}' has no directory '{}'; all hosts must see the working directory", host.name,
         expected.folder);
  if (answer.code == no_program)
    fail(Exit::missing_input, "host '{}' has no program '{}'; install it there under the same path", host.name,
         expected.program);
  const std::string prefix = expected.version.substr(0, expected.version.find(' ') + 1);
  const auto version =
      std::find_if(lines.begin(), lines.end(), [&](const std::string& line) { return line.starts_with(prefix); });
  if (version != lines.end() && *version != expected.version)
    fail(Exit::disagreement, "host '{}' has {}, but this machine has {}; install the same program on all hosts",
         host.name, *version, expected.version);
  if (answer.code != 0 || version == lines.end())
    fail(Exit::does_not_fit,
         "nothing can be started on host '{}': {}; check its name and network, and that '{} {} true' "
         "works without a question",
         host.name, lines.empty() ? "no answer" : lines.back(), agent, host.name);
  return processors_in(lines);
}

bool has_batch_system() {
  const std::array<const char*, 5> names{"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "LSB_JOBID", "LOADLBATCH"};
  return std::any_of(names.begin(), names.end(), [](const char* name) { return std::getenv(name) != nullptr; });
}

}  // namespace

std::vector<std::string> launch_agent() {
  const char* way = std::getenv("OMPI_MCA_plm");
  if (way != nullptr ? std::string_view(way) != "rsh" : has_batch_system()) return {};
  const char* agent = std::getenv("OMPI_MCA_plm_rsh_agent");
  const std::string text = agent == nullptr ? "" : agent;
  // Alternatives are separated by colons.
  std::vector<std::string> words = words_in(text.substr(0, text.find(':')));
  if (words.empty()) words = {"ssh", "-x"};
  if (words.front() == "ssh")
    for (const char* option : {"-oBatchMode=yes", "-oConnectTimeout=10"}) words.emplace_back(option);
  return words;
}

std::vector<std::optional<int>> ask_hosts(std::span<const Host> hosts, const Expectation& expected,
                                          const std::vector<std::string>& agent) {
  std::vector<std::optional<int>> processors(hosts.size());
  if (agent.empty()) return processors;
  std::vector<Failure> failures(hosts.size());
  const std::string name = agent.front() == "ssh" ? "ssh" : fmt::format("{}", fmt::join(agent, " "));
  std::atomic<std::size_t> next{0};
  const auto ask_some = [&] {
    for (std::size_t i = next++; i < hosts.size(); i = next++) {
      if (is_this_machine(hosts[i].name)) continue;
      std::vector<std::string> words = agent;
      words.push_back(hosts[i].name);
      words.push_back(question(expected));
      try {
        processors[i] = judge(hosts[i], run_command(words, patience), expected, name);
      } catch (...) {
        failures[i] = current_failure();
      }
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(hosts.size(), most_at_a_time); ++i) threads.emplace_back(ask_some);
  threads.clear();
  for (const Failure& failure : failures)
    if (failure.code != Exit::done) throw base::Error(failure.code, failure.message);
  return processors;
}

}  // namespace orthant::comm
