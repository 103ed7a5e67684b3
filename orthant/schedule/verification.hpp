#pragma once

#include "orthant/model/arguments.hpp"
#include "orthant/schedule/byte_set.hpp"
#include "orthant/schedule/schedule.hpp"

#include <string>
#include <vector>

namespace orthant::schedule {

/// Lines that verify() returns.
using Mistakes = std::vector<std::string>;

/// What a task does with the memory of one argument.
struct Touch {
  model::Argument argument;
  int root = -1;                ///< the buffer that has the memory
  std::int64_t first_byte = 0;  ///< where the argument's buffer begins in it
  ByteSet bytes;                ///< of `root`
};

/// The buffer that has the memory of `buffer`.
int root_of(const Schedule& schedule, int buffer);
const Buffer& buffer_of(const Schedule& schedule, int buffer);

/// The arguments that are there and are touched; empty for messages.
std::vector<Touch> touches_of(const Schedule& schedule, const Step& step);

/// The bytes of a message in its root.
ByteSet bytes_of(const Schedule& schedule, const Message& message);

/// Where an exchange begins and ends; -1 where it does not.
struct Flight {
  int start = -1, finish = -1;
};
std::vector<Flight> flights_of(const Schedule& schedule);

/// The step up to which others may read in place what an exchange sends: the last finish that names its buffer.
int release_of(const Schedule& schedule, const Message& message);

// Each needs what the ones before it checked.
Mistakes check_structure(const Schedule& schedule);
Mistakes check_arguments(const Schedule& schedule);
Mistakes check_exchanges(const Schedule& schedule);
Mistakes check_lifetimes(const Schedule& schedule);
Mistakes check_memory(const Schedule& schedule);

}  // namespace orthant::schedule
