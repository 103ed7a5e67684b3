#include "tests/engine/ranks.hpp"

#include "orthant/base/format.hpp"
#include "orthant/base/random.hpp"
#include "orthant/engine/engine.hpp"
#include "orthant/engine/kernel_needs.hpp"
#include "orthant/engine/parameter_order.hpp"
#include "orthant/kernels/conv.hpp"
#include "orthant/model/arguments.hpp"
#include "orthant/schedule/verify.hpp"
#include "tests/engine/interpreter.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <tuple>

namespace orthant::test {
namespace {

using tensor::Shape;

/// A number that depends on its place only.
float number(Data data, std::uint64_t key, std::int64_t index, bool weight) {
  const std::uint64_t bits = base::keyed(key, static_cast<std::uint64_t>(index));
  if (data == Data::integers) {
    const int most = weight ? 1 : 2;
    return static_cast<float>(static_cast<int>(bits % static_cast<std::uint64_t>(2 * most + 1)) - most);
  }
  const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
  return static_cast<float>(weight ? unit - 0.5 : 2 * unit - 1);
}

std::int64_t index_in(const Shape& shape, const Shape& at) {
  return (((at.n * shape.c + at.c) * shape.d + at.d) * shape.h + at.h) * shape.w + at.w;
}

/// Calls visit(index in the whole tensor, offset in the port's buffer).
template <class Visit>
void for_each_cell(const schedule::Port& port, const Shape& whole, Visit visit) {
  if (port.buffer < 0) return;
  Shape at;
  for (at.n = port.box.lo.n; at.n < port.box.hi.n; ++at.n) {
    for (at.c = port.box.lo.c; at.c < port.box.hi.c; ++at.c) {
      for (at.d = port.box.lo.d; at.d < port.box.hi.d; ++at.d) {
        for (at.h = port.box.lo.h; at.h < port.box.hi.h; ++at.h) {
          for (at.w = port.box.lo.w; at.w < port.box.hi.w; ++at.w) {
            std::int64_t offset = port.layout.offset;
            for (const tensor::Dim dim : tensor::all_dims)
              offset += (at[dim] - port.box.lo[dim]) * port.layout.strides[dim];
            visit(index_in(whole, at), static_cast<std::size_t>(offset));
          }
        }
      }
    }
  }
}

std::vector<float> make_parameter(const model::Parameter& parameter, Data data) {
  using Role = model::Parameter::Role;
  std::vector<float> values(static_cast<std::size_t>(model::count(parameter)));
  const std::uint64_t key = std::hash<std::string>{}(parameter.name);
  const bool scale = parameter.role == Role::norm_weight || parameter.role == Role::running_var;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = number(data, key, static_cast<std::int64_t>(i), true);
    if (scale) values[i] = data == Data::integers ? 1 : 1 + values[i] / 2;
    if (parameter.role == Role::norm_weight && data == Data::integers) values[i] = i % 2 == 0 ? 2 : 1;
    // Few arguments of ReLUs come close to zero, where rounding decides.
    if (parameter.role == Role::norm_bias && data == Data::reals) values[i] += 3;
    if (parameter.extents.size() > 1 && data == Data::reals) {
      const auto fan = static_cast<float>(model::count(parameter) / parameter.extents[0]);
      values[i] *= 2 * std::sqrt(3 / fan);
    }
  }
  return values;
}

/// Made once: large networks have many numbers and many ranks.
const std::vector<float>& whole_parameter(const model::Parameter& parameter, Data data) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::vector<std::int64_t>, Data>, std::vector<float>> known;
  const std::lock_guard lock(mutex);
  auto& values = known[{parameter.name, parameter.extents, data}];
  if (values.empty()) values = make_parameter(parameter, data);
  return values;
}

std::uint64_t input_key_of(const RanksOptions& options) { return 2 * options.seed; }
std::uint64_t target_key_of(const RanksOptions& options) { return 2 * options.seed + 1; }

std::vector<float> whole_tensor(const Shape& shape, Data data, std::uint64_t key) {
  std::vector<float> values(static_cast<std::size_t>(tensor::volume(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = number(data, key, static_cast<std::int64_t>(i), false);
  return values;
}

/// `floats(buffer)` and `labels(buffer)` are the memory of a buffer, whatever the numbers in it are.
template <class Memory>
void fill(const schedule::Schedule& schedule, Memory memory, const model::Graph& graph, const RanksOptions& options) {
  const Data data = options.data;
  const std::uint64_t input_key = input_key_of(options);
  const std::uint64_t target_key = target_key_of(options);
  for (const schedule::Port& port : schedule.inputs) {
    for_each_cell(port, graph.nodes.front().shape, [&](std::int64_t index, std::size_t offset) {
      memory.floats(port.buffer)[offset] = number(data, input_key, index, false);
    });
  }
  const Shape target = model::target_shape(graph);
  const auto classes = static_cast<std::uint64_t>(graph.nodes.back().shape.c);
  for (const schedule::Port& port : schedule.targets) {
    for_each_cell(port, target, [&](std::int64_t index, std::size_t offset) {
      if (schedule.labels) {
        memory.labels(port.buffer)[offset] =
            static_cast<std::int32_t>(base::keyed(target_key, static_cast<std::uint64_t>(index)) % classes);
      } else {
        memory.floats(port.buffer)[offset] = number(data, target_key, index, false);
      }
    });
  }
  for (const schedule::ParameterBuffers& entry : schedule.parameters) {
    if (entry.value < 0) continue;
    std::vector<float> values(static_cast<std::size_t>(plan::count(entry.parameter, entry.shard)));
    engine::to_kernel_order(graph, entry.parameter, entry.shard, whole_parameter(entry.parameter, data), values);
    std::copy(values.begin(), values.end(), memory.floats(entry.value).begin());
  }
}

/// Puts the optimizer's state of what one rank updates into the whole. Each item is updated once among the holders.
template <class Memory>
void collect_state(const schedule::ParameterBuffers& entry, Memory memory, const model::Graph& graph,
                   Outcome& outcome) {
  for (std::size_t i = 0; i < entry.state.size(); ++i) {
    std::vector<float>& whole = outcome.tensors[entry.parameter.name + ".state" + std::to_string(i)];
    whole.resize(static_cast<std::size_t>(model::count(entry.parameter)), std::nanf(""));
    const auto& items = memory.floats(entry.state[i].buffer);
    const auto first = items.begin() + entry.state[i].offset_bytes / static_cast<std::int64_t>(sizeof(float));
    const std::vector<float> mine(first, first + (entry.updated.hi - entry.updated.lo));
    std::vector<float> own(whole.size(), std::nanf(""));
    engine::to_file_order(graph, entry.parameter, entry.shard, entry.updated, mine, own);
    for (std::size_t k = 0; k < whole.size(); ++k) {
      if (std::isnan(own[k])) continue;
      EXPECT_TRUE(std::isnan(whole[k])) << entry.parameter.name << "[" << k << "] is updated by two holders";
      whole[k] = own[k];
    }
  }
}

/// Puts what one rank has into the whole.
template <class Memory>
void collect(const schedule::Schedule& schedule, Memory memory, const model::Graph& graph, const RanksOptions& options,
             Outcome& outcome) {
  const auto put = [&](std::vector<float>& whole, const schedule::Port& port, const Shape& shape) {
    whole.resize(static_cast<std::size_t>(tensor::volume(shape)), std::nanf(""));
    for_each_cell(port, shape, [&](std::int64_t index, std::size_t offset) {
      whole[static_cast<std::size_t>(index)] = static_cast<float>(memory.floats(port.buffer)[offset]);
    });
  };
  if (options.lower.keep_output) {
    for (const schedule::Port& port : schedule.outputs) put(outcome.output, port, graph.nodes.back().shape);
  }
  for (const schedule::Port& port : schedule.input_gradients)
    put(outcome.tensors["input"], port, graph.nodes.front().shape);
  for (const schedule::ParameterBuffers& entry : schedule.parameters) {
    const int buffer = options.lower.update ? entry.value : entry.gradient;
    if (buffer < 0) continue;
    collect_state(entry, memory, graph, outcome);
    const auto& items = memory.floats(buffer);
    const std::vector<float> mine(items.begin(), items.end());
    // Another holder of the shard may have been here: both must have the same.
    const auto [first, is_new] = outcome.shards.try_emplace({entry.parameter.name, entry.holders}, mine);
    if (!is_new) {
      EXPECT_EQ(first->second == mine, true) << entry.parameter.name << " differs between its holders";
      continue;
    }
    std::vector<float>& whole = outcome.tensors[entry.parameter.name];
    whole.resize(static_cast<std::size_t>(model::count(entry.parameter)), std::nanf(""));
    engine::to_file_order(graph, entry.parameter, entry.shard, mine, whole);
  }
}

using Traffics = std::map<std::string, comm::Traffic>;

void expect_traffic_as_scheduled(const Traffics& before, const Traffics& counted, const schedule::Schedule& schedule,
                                 int runs) {
  const auto of = [](const Traffics& all, const char* kind) {
    const auto found = all.find(kind);
    return found == all.end() ? comm::Traffic{} : found->second;
  };
  for (const auto kind :
       {schedule::Kind::halo, schedule::Kind::gather, schedule::Kind::redistribution, schedule::Kind::gradient,
        schedule::Kind::weights, schedule::Kind::statistics, schedule::Kind::loss}) {
    const schedule::Volume said = schedule::sent(schedule, kind);
    const comm::Traffic first = of(before, schedule::name_of(kind));
    const comm::Traffic last = of(counted, schedule::name_of(kind));
    EXPECT_EQ(last.messages - first.messages, said.messages * runs) << schedule::name_of(kind);
    EXPECT_EQ(last.bytes - first.bytes, said.bytes * runs) << schedule::name_of(kind);
    EXPECT_EQ(last.announced_bytes - first.announced_bytes, said.announced_bytes * runs) << schedule::name_of(kind);
  }
}

/// Throws if a step would reach beyond its buffers, or lacks one.
void check_bounds(const schedule::Schedule& schedule) {
  for (const schedule::Step& step : schedule.steps) {
    const auto* task = std::get_if<model::Task>(&step.work);
    if (!task) continue;
    const std::vector<Argument> arguments = arguments_of(*task);
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      const Argument& argument = arguments.at(i);
      if (step.arguments[i] < 0) {
        if (std::holds_alternative<model::CopyTask>(*task) || std::holds_alternative<model::AddTask>(*task))
          throw std::runtime_error(step.name + ": argument " + argument.name + " is missing");
        continue;
      }
      const schedule::Buffer& buffer = schedule.buffers.at(static_cast<std::size_t>(step.arguments[i]));
      if (end_of(argument.layout) * bytes_of(argument.type) > buffer.bytes) {
        throw std::runtime_error(fmt::format("{}: argument {} reaches to item {} of {}, which has {} bytes", step.name,
                                             argument.name, end_of(argument.layout), buffer.name, buffer.bytes));
      }
    }
  }
  for (const schedule::Exchange& exchange : schedule.exchanges) {
    schedule::for_each_message(exchange, [&](const schedule::Message& message, bool /*is_receive*/) {
      const schedule::Buffer& buffer = schedule.buffers.at(static_cast<std::size_t>(message.buffer));
      if (message.offset_bytes + message.bytes > buffer.bytes)
        throw std::runtime_error(exchange.name + " reaches beyond " + buffer.name);
    });
  }
}

/// Pieces are judged one by one.
std::vector<model::Task> judged_tasks(const model::Task& task) {
  const auto* copies = std::get_if<model::CopyPiecesTask>(&task);
  if (!copies) return {task};
  std::vector<model::Task> tasks;
  for (const auto& [src, dst] : copies->pieces)
    tasks.emplace_back(model::CopyTask{.accumulate = copies->accumulate, .src = src, .dst = dst});
  return tasks;
}

void check_arguments(const schedule::Step& step, const model::Task& task) {
  const std::vector<model::Argument> ours = model::arguments(task);
  const std::vector<Argument> judged = arguments_of(task);
  if (ours.size() != judged.size() || step.arguments.size() != judged.size())
    throw std::runtime_error(step.name + " has another number of arguments than its judge knows");
  for (std::size_t i = 0; i < judged.size(); ++i) {
    if (step.arguments[i] < 0) continue;
    const bool same = ours[i].position.name == judged[i].name && ours[i].layout == judged[i].layout &&
                      model::bytes_of(ours[i].type) == bytes_of(judged[i].type) &&
                      (ours[i].access == model::Access::write) == (judged[i].access == Access::write);
    const bool is_touched = ours[i].access != model::Access::none;
    if (is_touched && !same) throw std::runtime_error(step.name + ": argument " + judged[i].name + " differs");
  }
}

/// Throws if the product's list of a step's arguments is not the judge's, so that verify() sees what kernels do.
void check_arguments(const schedule::Schedule& schedule) {
  for (const schedule::Step& step : schedule.steps) {
    const auto* task = std::get_if<model::Task>(&step.work);
    if (!task) continue;
    for (const model::Task& one : judged_tasks(*task)) check_arguments(step, one);
  }
}

/// Leaves the choice to the rule; a convolution that is divided stays so.
void leave_open(plan::KernelChoice& choice) {
  if (choice.pieces.empty()) choice = {};
  choice.algorithm = model::Algorithm::automatic;
  for (model::ConvPiece& piece : choice.pieces) piece.algorithm = model::Algorithm::automatic;
}

/// Random plans name algorithms without knowing what these can run: where they cannot, the rule decides.
plan::Plan with_algorithms_that_run(const model::Graph& graph, plan::Plan plan, const RanksOptions& options) {
  const plan::Plan asked = plan;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    for (const schedule::Step& step : schedule::lower(graph, asked, rank, options.lower).steps) {
      const auto* task = std::get_if<model::Task>(&step.work);
      const auto* conv = task ? std::get_if<model::ConvTask>(task) : nullptr;
      if (!conv || conv->algorithm == model::Algorithm::automatic) continue;
      // Those of class fast round whole numbers, too.
      const bool rounds =
          options.data == Data::integers && model::error_class(conv->algorithm) != model::ErrorClass::exact;
      if (rounds || kernels::conv_candidates(*conv, 1).front().algorithm != conv->algorithm)
        leave_open(plan.nodes[static_cast<std::size_t>(step.node)].kernels[conv->pass]);
    }
  }
  return plan;
}

/// The schedules of all ranks. Throws if something is wrong with them.
std::vector<schedule::Schedule> lower_all(const model::Graph& graph, const plan::Plan& asked,
                                          const RanksOptions& options) {
  const plan::Plan plan = with_algorithms_that_run(graph, asked, options);
  std::vector<schedule::Schedule> ranks;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    schedule::LowerOptions own = options.lower;
    own.needs = engine::kernel_needs(1);
    const int most = plan.exchanges.most_ranks_per_machine;
    const int together = most > 0 ? std::min(most, options.ranks_per_machine) : options.ranks_per_machine;
    own.machines = plan::Machines::alike(plan.ranks, together);
    ranks.push_back(schedule::lower(graph, plan, rank, own));
    check_bounds(ranks.back());
    check_arguments(ranks.back());
  }
  const std::vector<std::string> mistakes = schedule::verify(ranks);
  if (!mistakes.empty()) throw std::runtime_error(fmt::format("{}", fmt::join(mistakes, "\n")));
  return ranks;
}

struct EngineMemory {
  engine::Engine& engine;
  [[nodiscard]] auto floats(int buffer) const { return engine.floats(buffer); }
  [[nodiscard]] auto labels(int buffer) const { return engine.labels(buffer); }
};

struct InterpreterMemory {
  Interpreter& interpreter;
  [[nodiscard]] Numbers& floats(int buffer) const { return interpreter.buffer(buffer); }
  [[nodiscard]] Numbers& labels(int buffer) const { return interpreter.buffer(buffer); }
};

}  // namespace

Outcome run_in_double(const model::Graph& graph, const RanksOptions& options) {
  Interpreter interpreter(std::move(lower_all(graph, plan::serial_plan(graph), options).front()));
  const InterpreterMemory memory{interpreter};
  fill(interpreter.schedule(), memory, graph, options);
  Outcome outcome;
  for (int run = 1; run <= options.runs; ++run) {
    interpreter.run({.step = run, .seed = 7, .learning_rate = options.learning_rate});
    outcome.losses.push_back(interpreter.buffer(interpreter.schedule().losses.front()).back());
  }
  collect(interpreter.schedule(), memory, graph, options, outcome);
  return outcome;
}

namespace {

/// Runs one rank and puts what it has into the outcome. `mutex` guards that.
void run_one(schedule::Schedule schedule, const model::Graph& graph, const RanksOptions& options, comm::Comm& comm,
             std::mutex& mutex, Outcome& outcome) {
  engine::Engine engine(std::move(schedule), comm, {.threads = 1, .before_allocation = {}});
  const EngineMemory memory{engine};
  fill(engine.schedule(), memory, graph, options);
  const Traffics before = comm.traffic();
  std::vector<double> losses;
  for (int run = 1; run <= options.runs; ++run) {
    engine.run({.step = run, .seed = 7, .learning_rate = options.learning_rate});
    losses.push_back(engine.losses().back());
  }
  const std::lock_guard lock(mutex);
  if (outcome.losses.empty()) outcome.losses = losses;
  EXPECT_EQ(outcome.losses, losses) << "rank " << comm.rank() << " has another loss";
  collect(engine.schedule(), memory, graph, options, outcome);
  expect_traffic_as_scheduled(before, comm.traffic(), engine.schedule(), options.runs);
}

}  // namespace

Outcome run_ranks(const model::Graph& graph, const plan::Plan& plan, const RanksOptions& options) {
  Outcome outcome;
  std::mutex mutex;
  std::vector<schedule::Schedule> schedules = lower_all(graph, plan, options);
  const auto body = [&](comm::Comm& comm) {
    run_one(std::move(schedules[static_cast<std::size_t>(comm.rank())]), graph, options, comm, mutex, outcome);
  };
  run_threads(plan.ranks, body, {.delays = options.delays});
  return outcome;
}

Outcome run_rank(const model::Graph& graph, const plan::Plan& plan, const RanksOptions& options, comm::Comm& comm) {
  Outcome outcome;
  std::mutex mutex;
  std::vector<schedule::Schedule> schedules = lower_all(graph, plan, options);
  run_one(std::move(schedules[static_cast<std::size_t>(comm.rank())]), graph, options, comm, mutex, outcome);
  return outcome;
}

std::vector<float> whole_input(const model::Graph& graph, const RanksOptions& options) {
  return whole_tensor(graph.nodes.front().shape, options.data, input_key_of(options));
}

std::vector<float> whole_target(const model::Graph& graph, const RanksOptions& options) {
  return whole_tensor(model::target_shape(graph), options.data, target_key_of(options));
}

std::string difference(const Outcome& actual, const Outcome& expected) {
  if (actual.losses != expected.losses)
    return fmt::format("loss {} instead of {}", actual.losses.back(), expected.losses.back());
  const auto compare = [](const std::string& name, const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) return fmt::format("{} has {} items instead of {}", name, a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i]) return fmt::format("{}[{}] is {} instead of {}", name, i, a[i], b[i]);
    }
    return std::string();
  };
  if (std::string text = compare("output", actual.output, expected.output); !text.empty()) return text;
  for (const auto& [name, values] : expected.tensors) {
    const auto found = actual.tensors.find(name);
    if (found == actual.tensors.end()) return name + " is missing";
    if (std::string text = compare(name, found->second, values); !text.empty()) return text;
  }
  return "";
}

std::string part_difference(const Outcome& part, const Outcome& expected) {
  Outcome filled = part;
  const auto fill_gaps = [](std::vector<float>& values, const std::vector<float>& from) {
    values.resize(from.size(), std::nanf(""));
    for (std::size_t i = 0; i < from.size(); ++i) values[i] = std::isnan(values[i]) ? from[i] : values[i];
  };
  fill_gaps(filled.output, expected.output);
  for (const auto& [name, values] : expected.tensors) fill_gaps(filled.tensors[name], values);
  return difference(filled, expected);
}

std::map<std::string, double> errors(const Outcome& actual, const Outcome& expected) {
  const auto norm = [](const std::vector<float>& values) {
    return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
  };
  double largest = 0;
  for (const auto& [name, values] : expected.tensors) largest = std::max(largest, norm(values));
  std::map<std::string, double> result;
  const auto compare = [&](const std::string& name, const std::vector<float>& a, const std::vector<float>& b,
                           double floor) {
    std::vector<float> gap(b.size());
    for (std::size_t i = 0; i < b.size(); ++i) gap[i] = a.at(i) - b[i];
    result[name] = norm(gap) == 0 ? 0 : norm(gap) / std::max(norm(b), floor);
  };
  compare("output", actual.output, expected.output, 1e-30);
  // A gradient that should vanish, like that of a bias before a normalisation, is measured against the others.
  for (const auto& [name, values] : expected.tensors) compare(name, actual.tensors.at(name), values, 0.1 * largest);
  return result;
}

}  // namespace orthant::test
