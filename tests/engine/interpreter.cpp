#include "tests/engine/interpreter.hpp"

#include "tests/support/arguments.hpp"

#include <algorithm>
#include <limits>

namespace orthant::test {

Interpreter::Interpreter(schedule::Schedule schedule) : schedule_(std::move(schedule)) {
  std::vector<ItemType> types(schedule_.buffers.size(), ItemType::float32);
  for (const schedule::Step& step : schedule_.steps) {
    const std::vector<Argument> arguments = arguments_of(std::get<model::Task>(step.work));
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      if (step.arguments[i] >= 0) types[static_cast<std::size_t>(step.arguments[i])] = arguments.at(i).type;
    }
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::int64_t items = schedule_.buffers[i].bytes / bytes_of(types[i]);
    const double start = schedule_.buffers[i].persistent ? 0 : std::numeric_limits<double>::quiet_NaN();
    buffers_.emplace_back(static_cast<std::size_t>(items), start);
  }
}

/// Calls visit(piece's buffer, first item in the whole) for every piece of `whole`.
template <class Visit>
void for_each_piece(const schedule::Schedule& schedule, int whole, Visit visit) {
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    if (schedule.buffers[i].inside == whole)
      visit(static_cast<int>(i), schedule.buffers[i].offset_bytes / bytes_of(ItemType::float32));
  }
}

void Interpreter::gather_pieces(int whole) {
  for_each_piece(schedule_, whole, [&](int piece, std::int64_t first) {
    std::copy(buffer(piece).begin(), buffer(piece).end(), buffer(whole).begin() + first);
  });
}

void Interpreter::scatter_pieces(int whole) {
  for_each_piece(schedule_, whole, [&](int piece, std::int64_t first) {
    std::copy_n(buffer(whole).begin() + first, buffer(piece).size(), buffer(piece).begin());
  });
}

void Interpreter::execute(const schedule::Step& step, const kernels::Context& context) {
  std::vector<Numbers*> arguments;
  for (const int argument : step.arguments) {
    arguments.push_back(argument < 0 ? nullptr : &buffer(argument));
    if (argument >= 0) gather_pieces(argument);
  }
  execute_reference(std::get<model::Task>(step.work), context, arguments);
  for (const int argument : step.arguments) {
    if (argument >= 0) scatter_pieces(argument);
  }
}

void Interpreter::run(const kernels::Context& context) {
  for (const schedule::Step& step : schedule_.steps) execute(step, context);
}

double Interpreter::loss(const kernels::Context& context) {
  std::vector<Numbers> before = buffers_;
  for (const schedule::Step& step : schedule_.steps) {
    if (step.phase == schedule::Phase::forward) execute(step, context);
  }
  const double sum = buffer(schedule_.losses.front()).back();
  buffers_ = std::move(before);
  return sum;
}

}  // namespace orthant::test
