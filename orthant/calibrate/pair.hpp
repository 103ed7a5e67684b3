#pragma once

#include "orthant/comm/typed.hpp"
#include "orthant/engine/step_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace orthant::calibrate {

/// One of two ranks between which messages are measured.
class Pair {
 public:
  Pair(comm::Comm& comm, int peer, bool is_first) : comm_(comm), peer_(peer), is_first_(is_first) {}

  [[nodiscard]] bool is_first() const { return is_first_; }
  [[nodiscard]] comm::Comm& comm() { return comm_; }
  /// Returns on both at about the same time.
  void meet() {
    std::byte token{};
    if (is_first_) {
      comm_.send({&token, 1}, peer_);
      comm_.receive({&token, 1}, peer_);
    } else {
      comm_.receive({&token, 1}, peer_);
      comm_.send({&token, 1}, peer_);
    }
  }
  /// The larger of the numbers of both.
  double larger(double mine) {
    double theirs = 0;
    if (is_first_) {
      comm::send(comm_, std::span(&mine, 1), peer_);
      comm::receive(comm_, std::span(&theirs, 1), peer_);
    } else {
      comm::receive(comm_, std::span(&theirs, 1), peer_);
      comm::send(comm_, std::span(&mine, 1), peer_);
    }
    return std::max(mine, theirs);
  }
  /// `count` messages of so many bytes each from this rank, and as many to it. Their memory is that of the pair, so
  /// only one transfer can be under way.
  std::unique_ptr<comm::Transfer> bind(int sends, int receives, std::int64_t bytes) {
    const auto messages = [&](std::vector<std::byte>& memory, int count) {
      memory.resize(std::max(memory.size(), static_cast<std::size_t>(count * bytes)), std::byte{1});
      std::vector<comm::Message> list;
      for (int i = 0; i < count; ++i)
        list.push_back({.peer = peer_, .data = memory.data() + i * bytes, .bytes = bytes, .tag = i});
      return list;
    };
    const std::vector<comm::Message> out = messages(sent_, sends), in = messages(received_, receives);
    return comm_.bind(out, in, "calibrate");
  }

 private:
  comm::Comm& comm_;
  int peer_;
  bool is_first_;
  std::vector<std::byte> sent_, received_;
};

}  // namespace orthant::calibrate
