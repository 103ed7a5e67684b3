#pragma once

#include "orthant/model/task.hpp"

#include <compare>
#include <functional>
#include <string>

namespace orthant::model {

/// All of a task that a kernel's speed depends on: pass, extents, strides where there are gaps, window, flags and
/// types; neither names and offsets nor numbers that are only multiplied by. Tasks with equal signatures take equally
/// long on one machine with as many threads. The text is for people and cache files; choices are remembered by it.
struct Signature {
  std::string text;

  auto operator<=>(const Signature&) const = default;
};

Signature signature(const Task& task);

}  // namespace orthant::model

template <>
struct std::hash<orthant::model::Signature> {
  std::size_t operator()(const orthant::model::Signature& signature) const noexcept {
    return std::hash<std::string>{}(signature.text);
  }
};
