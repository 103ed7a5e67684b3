#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/comm/ordered_sum.hpp"

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace orthant::comm {

template <class T>
concept Plain = std::is_trivially_copyable_v<T>;

/// A message of these items. Sending does not write to them, although Message::data is not const.
template <Plain T, std::size_t N>
Message message(int peer, std::span<T, N> items, int tag) {
  return {.peer = peer,
          .data = const_cast<std::remove_const_t<T>*>(items.data()),
          .bytes = static_cast<std::int64_t>(items.size_bytes()),
          .tag = tag};
}

/// Collective. Sends the items of the root to all ranks.
template <Plain T, std::size_t N>
void broadcast(Comm& comm, std::span<T, N> items, int root) {
  comm.broadcast(std::as_writable_bytes(items), root);
}

/// Collective. Returns the items of all ranks, which may have different numbers of them, on the root, and an empty list
/// on the other ranks.
template <Plain T, std::size_t N>
auto gather(Comm& comm, std::span<T, N> items, int root) {
  std::vector<std::vector<std::remove_const_t<T>>> gathered;
  for (const std::vector<std::byte>& bytes : comm.gather(std::as_bytes(items), root)) {
    std::vector<std::remove_const_t<T>> part(bytes.size() / sizeof(T));
    if (!part.empty()) std::memcpy(part.data(), bytes.data(), bytes.size());
    gathered.push_back(std::move(part));
  }
  return gathered;
}

/// Collective. Returns the values of all ranks on all ranks.
template <Plain T>
std::vector<T> all_gather(Comm& comm, const T& value) {
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

/// Collective. The numbers, and their sum, must be exact as std::int64_t or double.
template <class T>
requires std::is_arithmetic_v<T> T reduce(Comm& comm, T value, Reduction reduction) {
  auto reduced = static_cast<std::conditional_t<std::is_integral_v<T>, std::int64_t, double>>(value);
  comm.all_reduce(std::span(&reduced, 1), reduction);
  return static_cast<T>(reduced);
}

/// Collective. The sum of doubles is taken in the order of the ranks, so that its bits do not depend on the library.
template <class T>
requires std::is_arithmetic_v<T> T sum(Comm& comm, T value) {
  if constexpr (std::is_integral_v<T>) {
    return reduce(comm, value, Reduction::sum);
  } else {
    double total = value;
    sum_in_order(comm, std::span(&total, 1));
    return static_cast<T>(total);
  }
}

/// Collective.
template <class T>
requires std::is_arithmetic_v<T> T max(Comm& comm, T value) { return reduce(comm, value, Reduction::max); }

/// Collective.
template <class T>
requires std::is_arithmetic_v<T> T min(Comm& comm, T value) { return reduce(comm, value, Reduction::min); }

template <Plain T, std::size_t N>
void send(Comm& comm, std::span<T, N> items, int peer) {
  comm.send(std::as_bytes(items), peer);
}

template <Plain T, std::size_t N>
void receive(Comm& comm, std::span<T, N> items, int peer) {
  comm.receive(std::as_writable_bytes(items), peer);
}

}  // namespace orthant::comm
