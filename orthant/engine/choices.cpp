#include "orthant/engine/choices.hpp"

namespace orthant::engine {

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
