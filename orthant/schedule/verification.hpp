#pragma once

#include "orthant/model/arguments.hpp"
#include "orthant/schedule/byte_set.hpp"
#include "orthant/schedule/schedule.hpp"

#include <string>
#include <vector>

namespace orthant::schedule {

/// Lines that verify() returns.
using Mistakes = std::vector<std::string>;

/// The buffer that has the memory of `buffer`.
int root_of(const Schedule& schedule, int buffer);
const Buffer& buffer_of(const Schedule& schedule, int buffer);
/// Where `buffer` begins in its root.
std::int64_t first_byte_of(const Schedule& schedule, int buffer);

/// What a task does with the memory of one argument.
struct Touch {
  model::Argument argument;
  int root = -1;
  std::int64_t first_byte = 0;  ///< where the argument's buffer begins in `root`
  ByteSet bytes;                ///< of `root`
};

/// Which bytes of the roots steps and messages touch.
class Footprints {
 public:
  explicit Footprints(const Schedule& schedule);

  /// The arguments that are there and are touched; empty for messages.
  [[nodiscard]] std::vector<Touch> of(const Step& step) const;
  [[nodiscard]] ByteSet of(const Message& message) const;
  [[nodiscard]] ByteSet of(const Piece& piece, std::int64_t bytes) const;
  [[nodiscard]] ByteSet of(const Port& port) const;
  /// A range of bytes of the root of `buffer`.
  [[nodiscard]] ByteSet bytes(int buffer, const tensor::Range& range) const { return {period(buffer), range}; }
  [[nodiscard]] ByteSet nothing(int buffer) const { return ByteSet(period(buffer)); }

 private:
  [[nodiscard]] std::int64_t period(int buffer) const;

  const Schedule& schedule_;
  std::vector<std::int64_t> periods_;  ///< per root
};

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
