#include "orthant/comm/failure.hpp"

#include "orthant/base/format.hpp"
#include "orthant/base/printable.hpp"
#include "orthant/comm/attendance.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <vector>

namespace orthant::comm {
namespace {

using base::Exit;

/// "rank 3" or "ranks 0, 2, 3"; names at most eight.
std::string names(std::span<const int> ranks) {
  const std::size_t shown = std::min<std::size_t>(ranks.size(), 8);
  return fmt::format("rank{} {}{}", ranks.size() > 1 ? "s" : "", fmt::join(ranks.first(shown), ", "),
                     shown < ranks.size() ? fmt::format(" and {} more", ranks.size() - shown) : "");
}

}  // namespace

Failure current_failure() {
  try {
    throw;
  } catch (const base::Error& error) {
    return {error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    return {Exit::does_not_fit, "out of memory; use a smaller mini-batch or a smaller input"};
  } catch (const std::exception& error) {
    return {Exit::internal, "unexpected: " + base::one_line(error.what()) + "; please report this"};
  } catch (...) {
    return {Exit::internal, "unexpected: an exception without a message; please report this"};
  }
}

void print_error(const std::string& message) {
  tell_launcher(Mark::spoke);
  std::fflush(stdout);
  // A single write, so that the lines of several ranks cannot be interleaved.
  const std::string line = "error: " + base::one_line(message) + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

Failure merged(std::span<const Failure> of_ranks) {
  std::vector<int> same;
  std::vector<int> others;
  const Failure* first = nullptr;
  for (std::size_t i = 0; i < of_ranks.size(); ++i) {
    if (of_ranks[i].code == Exit::done) continue;
    if (first == nullptr) first = &of_ranks[i];
    (of_ranks[i] == *first ? same : others).push_back(static_cast<int>(i));
  }
  if (same.size() == of_ranks.size()) return *first;
  const std::string more = others.empty() ? "" : fmt::format(" (another error on {})", names(others));
  return {first->code, fmt::format("{}: {}{}", names(same), first->message, more)};
}

}  // namespace orthant::comm
