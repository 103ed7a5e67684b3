#include "orthant/schedule/text.hpp"

#include <array>

namespace orthant::schedule {
namespace {

struct WorkName {
  std::string operator()(const model::Task& task) const { return name_of(task); }
  std::string operator()(const Start&) const { return "start"; }
  std::string operator()(const Finish&) const { return "finish"; }
};

}  // namespace

const char* name_of(const model::Task& task) {
  static constexpr std::array<const char*, std::variant_size_v<model::Task>> names{
      "conv", "dense", "pool",    "norm_sums",     "norm",      "activation", "softmax", "copy",
      "fill", "add",   "dropout", "bias_gradient", "loss_sums", "loss",       "sum",     "update"};
  return names.at(task.index());
}

const char* name_of(Kind kind) {
  static constexpr std::array names{"halo", "gather", "redistribution", "gradient", "weights", "statistics", "loss"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule.steps) {
    text += step.name + " " + std::visit(WorkName{}, step.work) + "(";
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
