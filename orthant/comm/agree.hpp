#pragma once

#include "orthant/base/error.hpp"
#include "orthant/comm/failure.hpp"
#include "orthant/comm/typed.hpp"

#include <exception>
#include <optional>
#include <string>
#include <type_traits>

namespace orthant::comm {

/// An Error that every rank throws at the same call, so the job unwinds and ends cleanly.
class CollectiveError : public base::Error {
 public:
  using base::Error::Error;
};

/// Collective. If any rank passes a failure (a code other than `done`), all ranks throw CollectiveError.
void agree_on(Comm& comm, const Failure& failure);

/// Collective. Runs `work` on every rank and returns its value; if it throws on any rank, all ranks throw
/// CollectiveError with the message of that rank. `work` must not communicate.
template <class Work>
auto agree(Comm& comm, Work work) {
  Failure failure;
  if constexpr (std::is_void_v<decltype(work())>) {
    try {
      work();
    } catch (...) {
      failure = current_failure();
    }
    agree_on(comm, failure);
  } else {
    std::optional<decltype(work())> value;
    try {
      value.emplace(work());
    } catch (...) {
      failure = current_failure();
    }
    agree_on(comm, failure);
    return std::move(*value);
  }
}

/// Collective. Returns the text of the root on all ranks; if the root passes a failure, all ranks throw
/// CollectiveError.
std::string from_root(Comm& comm, const Failure& failure, std::string text);

/// Collective. Runs `make` on rank 0 and returns its value (text, or something trivially copyable, or nothing) on all
/// ranks; if it throws, all ranks throw CollectiveError. `make` must not communicate.
template <class Make>
auto on_root(Comm& comm, Make make) {
  using Value = decltype(make());
  Failure failure;
  std::string text;
  if (comm.rank() == 0) {
    try {
      if constexpr (std::is_void_v<Value>) {
        make();
      } else if constexpr (std::is_same_v<Value, std::string>) {
        text = make();
      } else {
        static_assert(Plain<Value>);
        const Value value = make();
        text.assign(reinterpret_cast<const char*>(&value), sizeof(Value));
      }
    } catch (...) {
      failure = current_failure();
    }
  }
  text = from_root(comm, failure, std::move(text));
  if constexpr (std::is_same_v<Value, std::string>) {
    return text;
  } else if constexpr (!std::is_void_v<Value>) {
    Value value{};
    std::memcpy(&value, text.data(), sizeof(Value));
    return value;
  }
}

}  // namespace orthant::comm
