#include "orthant/schedule/text.hpp"

#include <array>

namespace orthant::schedule {

const char* name_of(const model::Task& task) {
  static constexpr std::array<const char*, std::variant_size_v<model::Task>> names{
      "conv", "dense", "pool",    "norm",          "activation", "softmax",
      "copy", "add",   "dropout", "bias_gradient", "loss",       "update"};
  return names.at(task.index());
}

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule.steps) {
    text += step.name + " " + name_of(step.task) + "(";
    const char* separator = "";
    for (const int argument : step.arguments) {
      text += separator + (argument < 0 ? "-" : schedule.buffers[static_cast<std::size_t>(argument)].name);
      separator = ", ";
    }
    text += ")\n";
  }
  return text;
}

}  // namespace orthant::schedule
