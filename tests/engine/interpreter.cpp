#include "tests/engine/interpreter.hpp"

#include "tests/support/arguments.hpp"

#include <limits>

namespace orthant::test {

Interpreter::Interpreter(schedule::Schedule schedule) : schedule_(std::move(schedule)) {
  std::vector<ItemType> types(schedule_.buffers.size(), ItemType::float32);
  for (const schedule::Step& step : schedule_.steps) {
    const std::vector<Argument> arguments = arguments_of(step.task);
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

void Interpreter::execute(const schedule::Step& step, const kernels::Context& context) {
  std::vector<Numbers*> arguments;
  for (const int argument : step.arguments) arguments.push_back(argument < 0 ? nullptr : &buffer(argument));
  execute_reference(step.task, context, arguments);
}

void Interpreter::run(const kernels::Context& context) {
  for (const schedule::Step& step : schedule_.steps) execute(step, context);
}

double Interpreter::loss(const kernels::Context& context) {
  std::vector<Numbers> before = buffers_;
  for (const schedule::Step& step : schedule_.steps) {
    if (step.phase == schedule::Phase::forward) execute(step, context);
  }
  const double sum = buffer(schedule_.loss).back();
  buffers_ = std::move(before);
  return sum;
}

}  // namespace orthant::test
