#pragma once

#include "orthant/model/arguments.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/schedule/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace orthant::schedule {

/// A small network with something of everything that tests of verify() break.
inline model::Graph small_network() {
  const tensor::Window three{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  model::GraphBuilder builder("small", 3, {.n = 4, .c = 2, .d = 8, .h = 8, .w = 8});
  builder.add("a", model::Conv{.filters = 4, .window = three});
  builder.add("norm", model::BatchNorm{});
  builder.add("relu", model::Activation{.kind = model::ActivationKind::relu});
  builder.add("b", model::Conv{.filters = 4, .window = three, .bias = false});
  builder.add("pool", model::Pool{.window = {.size = tensor::cube(2), .stride = tensor::cube(2)}});
  builder.add("flat", model::Flatten{});
  builder.add("dense", model::Dense{.features = 3});
  return builder.finish({.terms = {{}}});
}

/// The schedules of all ranks under a compact grid, on one machine.
inline std::vector<Schedule> lowered(const std::string& grid, LowerOptions options = {},
                                     const plan::ExchangeForms& forms = {}, const plan::KernelChoices& kernels = {}) {
  const model::Graph graph = small_network();
  plan::Plan plan = plan::make_plan(graph, plan::parse_grid(grid));
  plan.exchanges = forms;
  for (plan::NodePlan& node : plan.nodes) {
    if (node.node == "b") node.kernels = kernels;
  }
  options.least_bytes_in_place = 0;
  options.machines = plan::Machines({plan.ranks});
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < plan.ranks; ++rank) schedules.push_back(lower(graph, plan, rank, options));
  return schedules;
}

template <class List>
auto& named(List& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.name == name; });
  EXPECT_NE(found, list.end()) << name;
  return *found;
}

inline int step_index(const Schedule& schedule, const std::string& name) {
  return static_cast<int>(&named(schedule.steps, name) - schedule.steps.data());
}

inline int buffer_index(const Schedule& schedule, const std::string& name) {
  return static_cast<int>(&named(schedule.buffers, name) - schedule.buffers.data());
}

template <class Task>
Task& task_of(Schedule& schedule, const std::string& step) {
  return std::get<Task>(std::get<model::Task>(named(schedule.steps, step).work));
}

/// Lets every buffer live from the first step to the last, so that steps can be moved.
inline void keep_all(Schedule& schedule) {
  for (Buffer& buffer : schedule.buffers) {
    buffer.first_step = 0;
    buffer.last_step = static_cast<int>(schedule.steps.size()) - 1;
  }
}

inline void swap_steps(Schedule& schedule, const std::string& a, const std::string& b) {
  keep_all(schedule);
  std::swap(named(schedule.steps, a), named(schedule.steps, b));
}

/// Moves a step behind another one.
inline void move_behind(Schedule& schedule, const std::string& step, const std::string& other) {
  keep_all(schedule);
  const auto from = schedule.steps.begin() + step_index(schedule, step);
  const auto to = schedule.steps.begin() + step_index(schedule, other) + 1;
  from < to ? std::rotate(from, from + 1, to) : std::rotate(to, from, from + 1);
}

/// Puts a new step behind another one.
inline void insert_behind(Schedule& schedule, Step step, const std::string& other) {
  schedule.steps.insert(schedule.steps.begin() + step_index(schedule, other) + 1, std::move(step));
  keep_all(schedule);
}

/// Passes if the first mistake has `words` in it.
inline testing::AssertionResult finds(const std::vector<std::string>& mistakes, const std::string& words) {
  if (mistakes.empty()) return testing::AssertionFailure() << "no mistake is found";
  if (mistakes.front().find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the first mistake is: " << mistakes.front();
}

}  // namespace orthant::schedule
