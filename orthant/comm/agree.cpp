#include "orthant/comm/agree.hpp"

#include <array>

namespace orthant::comm {
namespace {

using base::Exit;

/// Collective. Sends text of any length from the root to all ranks.
void broadcast_text(Comm& comm, std::string& text) {
  auto size = static_cast<std::int64_t>(text.size());
  broadcast(comm, std::span(&size, 1), 0);
  text.resize(static_cast<std::size_t>(size));
  if (size > 0) broadcast(comm, std::span(text), 0);
}

/// Collective. All ranks throw the failure of the root.
[[noreturn]] void throw_on_all(Comm& comm, Failure failure) {
  auto code = static_cast<int>(failure.code);
  broadcast(comm, std::span(&code, 1), 0);
  broadcast_text(comm, failure.message);
  throw CollectiveError(static_cast<Exit>(code), failure.message);
}

}  // namespace

void agree_on(Comm& comm, const Failure& failure) {
  const auto code = static_cast<int>(failure.code);
  if (max(comm, code == 0 ? 0 : 1) == 0) return;
  const std::vector<std::vector<int>> codes = gather(comm, std::span(&code, 1), 0);
  std::vector<Failure> failures;
  for (const std::vector<char>& text : gather(comm, std::span(failure.message), 0))
    failures.push_back({static_cast<Exit>(codes[failures.size()].front()), std::string(text.begin(), text.end())});
  throw_on_all(comm, comm.rank() == 0 ? merged(failures) : Failure{});
}

std::string from_root(Comm& comm, const Failure& failure, std::string text) {
  int failed = failure.code == Exit::done ? 0 : 1;
  broadcast(comm, std::span(&failed, 1), 0);
  if (failed != 0) throw_on_all(comm, failure);
  broadcast_text(comm, text);
  return text;
}

}  // namespace orthant::comm
