#pragma once

#include "orthant/schedule/value.hpp"
#include "orthant/tensor/moves.hpp"

#include <span>
#include <vector>

namespace orthant::schedule {

/// Boxes of tensors that go to other ranks, or come from them.
struct Parcels {
  std::span<const Value> tensors{};  ///< one, or one per wanted box; all lie in one buffer
  std::span<const tensor::Move> moves{};

  [[nodiscard]] const Value& tensor_of(const tensor::Move& move) const {
    return tensors.size() == 1 ? tensors.front() : tensors[static_cast<std::size_t>(move.wanted)];
  }
};

enum class Way { out, in };

/// The messages of parcels. What is not contiguous in its tensor lies in a buffer of its own, one box after the other.
struct Packing {
  std::vector<Message> messages{};
  std::vector<model::CopyPiecesTask::Piece> copies{};  ///< into that buffer, or out of it
  std::int64_t bytes = 0;                              ///< of that buffer
};

/// `buffer` is the one for what is not contiguous, or, with `copies_all`, for everything.
Packing pack(const Parcels& parcels, Way way, int buffer, bool copies_all = false);

}  // namespace orthant::schedule
