#include "orthant/schedule/verification.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

/// Calls visit(argument, buffer) for the arguments of a task that are there and are touched.
template <class Visit>
void for_each_touched(const Step& step, Visit visit) {
  const auto* task = std::get_if<model::Task>(&step.work);
  if (!task) return;
  for (const model::Argument& argument : model::arguments(*task)) {
    const int buffer = step.arguments[argument.position];
    if (buffer >= 0 && argument.access != model::Access::none) visit(argument, buffer);
  }
}

}  // namespace

std::int64_t first_byte_of(const Schedule& schedule, int buffer) {
  const Buffer& piece = buffer_of(schedule, buffer);
  return piece.inside < 0 ? 0 : piece.offset_bytes;
}

/// The shortest gaps that any step leaves in a root decide.
Footprints::Footprints(const Schedule& schedule) : schedule_(schedule) {
  for (const Buffer& buffer : schedule.buffers) periods_.push_back(std::max<std::int64_t>(buffer.bytes, 1));
  for (const Step& step : schedule.steps) {
    for_each_touched(step, [&](const model::Argument& argument, int buffer) {
      const std::int64_t period = period_of(argument.touched, model::bytes_of(argument.type));
      std::int64_t& least = periods_[static_cast<std::size_t>(root_of(schedule, buffer))];
      if (period > 0) least = std::min(least, period);
    });
  }
}

std::int64_t Footprints::period(int buffer) const {
  return periods_[static_cast<std::size_t>(root_of(schedule_, buffer))];
}

std::vector<Touch> Footprints::of(const Step& step) const {
  std::vector<Touch> touches;
  for_each_touched(step, [&](const model::Argument& argument, int buffer) {
    const std::int64_t first = first_byte_of(schedule_, buffer);
    touches.push_back({.argument = argument,
                       .root = root_of(schedule_, buffer),
                       .first_byte = first,
                       .bytes = {period(buffer), argument.touched, model::bytes_of(argument.type), first}});
  });
  return touches;
}

ByteSet Footprints::of(const Message& message) const {
  return of(Piece{message.buffer, message.offset_bytes}, message.bytes);
}

ByteSet Footprints::of(const Piece& piece, std::int64_t bytes) const {
  const std::int64_t begin = first_byte_of(schedule_, piece.buffer) + piece.offset_bytes;
  return {period(piece.buffer), tensor::Range{begin, begin + bytes}};
}

ByteSet Footprints::of(const Port& port) const {
  return {period(port.buffer), port.layout, sizeof(float), first_byte_of(schedule_, port.buffer)};
}

}  // namespace orthant::schedule
