#include "orthant/base/format.hpp"
#include "orthant/schedule/text.hpp"
#include "orthant/schedule/verification.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using model::Argument;
using model::Presence;

bool is_buffer(const Schedule& schedule, int index) {
  return index >= 0 && index < static_cast<int>(schedule.buffers.size());
}

void check_buffers(const Schedule& schedule, Mistakes& mistakes) {
  for (const Buffer& buffer : schedule.buffers) {
    if (buffer.bytes < 0) mistakes.push_back(fmt::format("{} has {} bytes", buffer.name, buffer.bytes));
    if (buffer.inside < 0) continue;
    if (!is_buffer(schedule, buffer.inside)) {
      mistakes.push_back(fmt::format("{} is inside buffer {}, which does not exist", buffer.name, buffer.inside));
      continue;
    }
    const Buffer& parent = buffer_of(schedule, buffer.inside);
    if (parent.inside >= 0)
      mistakes.push_back(fmt::format("{} is inside {}, which is a piece itself", buffer.name, parent.name));
    if (buffer.offset_bytes < 0 || buffer.offset_bytes + buffer.bytes > parent.bytes) {
      mistakes.push_back(fmt::format("{} is bytes {} to {} of {}, which has {}", buffer.name, buffer.offset_bytes,
                                     buffer.offset_bytes + buffer.bytes, parent.name, parent.bytes));
    }
  }
}

/// Bytes of a buffer that something of an exchange touches.
void check_bytes(const Schedule& schedule, const std::string& what, const Piece& piece, std::int64_t bytes,
                 Mistakes& mistakes) {
  if (!is_buffer(schedule, piece.buffer)) {
    mistakes.push_back(fmt::format("{} lies in buffer {}, which does not exist", what, piece.buffer));
    return;
  }
  const Buffer& buffer = buffer_of(schedule, piece.buffer);
  const std::int64_t end = piece.offset_bytes + bytes;
  if (bytes <= 0) mistakes.push_back(fmt::format("{} has {} bytes", what, bytes));
  if (piece.offset_bytes < 0 || end > buffer.bytes) {
    mistakes.push_back(fmt::format("{} is bytes {} to {} of {}, which has {}", what, piece.offset_bytes, end,
                                   buffer.name, buffer.bytes));
  }
}

void check_round(const Schedule& schedule, const std::string& name, const Round& round, Mistakes& mistakes) {
  if (round.sends.empty() && round.receives.empty() && !round.collective)
    mistakes.push_back(fmt::format("{} has no messages", name));
  for (const auto* list : {&round.sends, &round.receives}) {
    const char* direction = list == &round.sends ? "to" : "from";
    for (const Message& message : *list) {
      const std::string what = fmt::format("{}: the message {} rank {}", name, direction, message.peer);
      if (message.peer < 0) mistakes.push_back(what + " has no such peer");
      check_bytes(schedule, what, {message.buffer, message.offset_bytes}, message.bytes, mistakes);
    }
  }
  for (const Combination& one : round.combinations) {
    const std::int64_t bytes = one.count * model::bytes_of(one.type);
    check_bytes(schedule, name + ": what is combined", one.src, bytes, mistakes);
    check_bytes(schedule, name + ": what is combined", one.dst, bytes, mistakes);
  }
  if (!round.collective) return;
  if (!round.sends.empty() || !round.receives.empty())
    mistakes.push_back(fmt::format("{} has messages beside a collective", name));
  check_bytes(schedule, name + ": what is given to MPI", round.collective->src, bytes_given(*round.collective),
              mistakes);
  check_bytes(schedule, name + ": what comes from MPI", round.collective->dst, bytes_taken(*round.collective),
              mistakes);
}

void check_messages(const Schedule& schedule, const Exchange& exchange, Mistakes& mistakes) {
  if (exchange.rounds.empty()) mistakes.push_back(fmt::format("{} has no messages", exchange.name));
  for (const Round& round : exchange.rounds) check_round(schedule, exchange.name, round, mistakes);
}

/// Steps name buffers and exchanges that exist, and so do ports.
void check_indices(const Schedule& schedule, Mistakes& mistakes) {
  const auto is_exchange = [&](int index) { return index >= 0 && index < static_cast<int>(schedule.exchanges.size()); };
  for (const Step& step : schedule.steps) {
    for (const int argument : step.arguments) {
      if (argument >= static_cast<int>(schedule.buffers.size()) || argument < -1)
        mistakes.push_back(fmt::format("{} has buffer {}, which does not exist", step.name, argument));
    }
    const auto* start = std::get_if<Start>(&step.work);
    const auto* finish = std::get_if<Finish>(&step.work);
    const int exchange = start ? start->exchange : finish ? finish->exchange : 0;
    if ((start || finish) && !is_exchange(exchange))
      mistakes.push_back(fmt::format("{} has exchange {}, which does not exist", step.name, exchange));
  }
  const auto check = [&](const char* what, int buffer) {
    if (buffer != -1 && !is_buffer(schedule, buffer))
      mistakes.push_back(fmt::format("{} has buffer {}, which does not exist", what, buffer));
  };
  for (const auto* ports :
       {&schedule.inputs, &schedule.targets, &schedule.outputs, &schedule.predictions, &schedule.input_gradients}) {
    for (const Port& port : *ports) check("a port", port.buffer);
  }
  for (const int loss : schedule.losses) check("a loss", loss);
  for (const ParameterBuffers& entry : schedule.parameters) {
    check(entry.parameter.name.c_str(), entry.value);
    check(entry.parameter.name.c_str(), entry.gradient);
  }
  for (const Bucket& bucket : schedule.buckets) {
    check(bucket.name.c_str(), bucket.value);
    check(bucket.name.c_str(), bucket.gradient);
  }
}

void check_argument(const Schedule& schedule, const Step& step, const Argument& argument, Mistakes& mistakes) {
  const int index = step.arguments[argument.position];
  const std::string name = fmt::format("{}: argument {}", step.name, argument.position.name);
  const std::int64_t end = model::end_of(argument.layout);
  if (index < 0) {
    if (argument.presence == Presence::required && end > 0) mistakes.push_back(name + " is missing");
    return;
  }
  const Buffer& buffer = buffer_of(schedule, index);
  if (argument.presence == Presence::null)
    mistakes.push_back(fmt::format("{} is {}, but the task has none", name, buffer.name));
  if (argument.presence == Presence::null || end == 0) return;
  const std::int64_t item = model::bytes_of(argument.type);
  if (argument.layout.offset < 0 || end * item > buffer.bytes) {
    mistakes.push_back(fmt::format("{} is bytes {} to {} of {}, which has {}", name, argument.layout.offset * item,
                                   end * item, buffer.name, buffer.bytes));
  }
}

}  // namespace

Mistakes check_structure(const Schedule& schedule) {
  Mistakes mistakes;
  check_buffers(schedule, mistakes);
  for (const Exchange& exchange : schedule.exchanges) check_messages(schedule, exchange, mistakes);
  check_indices(schedule, mistakes);
  return mistakes;
}

Mistakes check_arguments(const Schedule& schedule) {
  Mistakes mistakes;
  for (const Step& step : schedule.steps) {
    const auto* task = std::get_if<model::Task>(&step.work);
    if (!task) continue;
    const std::vector<Argument> arguments = model::arguments(*task);
    if (const std::size_t count = model::argument_count(*task); count != step.arguments.size()) {
      mistakes.push_back(fmt::format("{} has {} arguments, but a {} takes {}", step.name, step.arguments.size(),
                                     name_of(*task), count));
      continue;
    }
    for (const Argument& argument : arguments) check_argument(schedule, step, argument, mistakes);
  }
  return mistakes;
}

}  // namespace orthant::schedule
