#include "orthant/engine/choices.hpp"

#include "orthant/kernels/task_key.hpp"

namespace orthant::engine {

std::string choice_key(const model::ConvTask& task, int threads, model::ErrorClass error) {
  const char* among = error == model::ErrorClass::exact ? "" : " fast";
  return kernels::task_key(task, threads) + among;
}

microbatch::Records to_records(const Choices& choices) {
  microbatch::Records records;
  for (const auto& [key, choice] : choices)
    records[key] = {{model::name_of(choice.algorithm), choice.seconds, choice.scratch_bytes}};
  return records;
}

Choices to_choices(const microbatch::Records& records) {
  Choices choices;
  for (const auto& [key, list] : records) {
    const auto algorithm = model::algorithm_named(list.front().algorithm);
    if (list.size() == 1 && algorithm) choices[key] = {*algorithm, list.front().seconds, list.front().workspace_bytes};
  }
  return choices;
}

}  // namespace orthant::engine
