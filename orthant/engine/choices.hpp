#pragma once

#include "orthant/microbatch/store.hpp"
#include "orthant/model/task.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace orthant::engine {

/// The fastest algorithm of a task, its time and its scratch memory.
struct Choice {
  model::Algorithm algorithm = model::Algorithm::automatic;
  double seconds = 0;
  std::int64_t scratch_bytes = 0;
  bool operator==(const Choice&) const = default;
};

/// Choices by choice_key().
using Choices = std::map<std::string, Choice>;

/// The key of a task's choice among algorithms with errors of at most this class.
std::string choice_key(const model::ConvTask& task, int threads, model::ErrorClass error);

/// As the store keeps them. Records of algorithms that this version does not know are left out.
microbatch::Records to_records(const Choices& choices);
Choices to_choices(const microbatch::Records& records);

}  // namespace orthant::engine
