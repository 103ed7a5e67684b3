#include "orthant/engine/engine.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/failure.hpp"
#include "orthant/comm/watchdog.hpp"
#include "orthant/schedule/verify.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <utility>

namespace orthant::engine {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Makes the kernel of a step; an error names the step.
std::unique_ptr<kernels::Primitive> bind(const schedule::Step& step, int threads) {
  const auto* task = std::get_if<model::Task>(&step.work);
  if (!task) return nullptr;
  try {
    return kernels::make_primitive(*task, threads);
  } catch (const base::Error& error) {
    throw base::Error(error.code(), step.name + ": " + error.what());
  }
}

/// A step whose schedule was made without kernels learns what its kernel needs.
void settle_scratch(schedule::Step& step, std::int64_t needed_bytes) {
  if (step.scratch_bytes == schedule::Step::unknown_bytes) step.scratch_bytes = needed_bytes;
  if (step.scratch_bytes < needed_bytes) {
    base::fail(base::Exit::internal,
               "{}: the schedule has {} bytes of scratch memory for it, but its kernel needs {}; was the schedule made "
               "for another machine or number of threads?",
               step.name, step.scratch_bytes, needed_bytes);
  }
}

comm::Collective::Operation operation_of(schedule::Collective::Operation operation) {
  using Theirs = comm::Collective::Operation;
  switch (operation) {
    case schedule::Collective::Operation::all_reduce: return Theirs::all_reduce;
    case schedule::Collective::Operation::reduce_scatter: return Theirs::reduce_scatter;
    case schedule::Collective::Operation::all_gather: break;
  }
  return Theirs::all_gather;
}

}  // namespace

Engine::Engine(schedule::Schedule schedule, comm::Comm& comm, const EngineOptions& options)
    : schedule_(std::move(schedule)), comm_(comm), poll_([&comm] { comm.progress(); }) {
  assert((schedule::check(schedule_), true));
  for (schedule::Step& step : schedule_.steps) {
    primitives_.push_back(bind(step, options.threads));
    if (primitives_.back()) settle_scratch(step, primitives_.back()->scratch_bytes());
  }
  placement_ = schedule::place(schedule_);
  if (options.before_allocation) options.before_allocation(placement_);
  arena_ = std::make_unique<Arena>(placement_.arena_bytes);
  shared_ = std::make_unique<SharedMemory>(schedule_, placement_, arena_->data(), comm);

  for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
    std::vector<void*> pointers;
    for (const int argument : schedule_.steps[i].arguments) {
      pointers.push_back(argument < 0 ? nullptr
                                      : arena_->data() + placement_.offsets[static_cast<std::size_t>(argument)]);
    }
    arguments_.push_back(std::move(pointers));
    scratch_.push_back(arena_->data() + placement_.scratch_offsets[i]);
  }
  const auto loss = static_cast<std::size_t>(schedule_.losses.front());
  losses_.resize(static_cast<std::size_t>(schedule_.buffers[loss].bytes) / sizeof(double));
}

std::byte* Engine::address(const schedule::Piece& piece) const {
  const auto buffer = static_cast<std::size_t>(piece.buffer);
  if (schedule_.buffers[buffer].keeper >= 0)
    return const_cast<std::byte*>(shared_->kept(piece.buffer)) + piece.offset_bytes;
  return arena_->data() + placement_.offsets[buffer] + piece.offset_bytes;
}

comm::Round Engine::placed(const schedule::Round& round, int tag) const {
  const auto number = [](model::ItemType type) {
    return type == model::ItemType::float32 ? comm::Number::float32 : comm::Number::float64;
  };
  const auto messages = [&](const std::vector<schedule::Message>& list) {
    std::vector<comm::Message> result;
    for (const schedule::Message& message : list) {
      result.push_back({.peer = message.peer,
                        .data = address({message.buffer, message.offset_bytes}),
                        .bytes = message.bytes,
                        .tag = tag,
                        .announced = message.transport != schedule::Transport::moved});
    }
    return result;
  };
  comm::Round result{.sends = messages(round.sends), .receives = messages(round.receives)};
  for (const schedule::Combination& one : round.combinations) {
    result.combinations.push_back({.dst = address(one.dst),
                                   .src = address(one.src),
                                   .count = one.count,
                                   .type = number(one.type),
                                   .accumulate = one.accumulate});
  }
  if (const auto& one = round.collective) {
    result.collective = comm::Collective{.operation = operation_of(one->operation),
                                         .ranks = one->ranks,
                                         .src = address(one->src),
                                         .dst = address(one->dst),
                                         .count = one->count,
                                         .type = number(one->type)};
  }
  return result;
}

/// Binds messages to memory, that of other ranks included.
void Engine::bind_messages() {
  std::vector<comm::CollectiveGroup> groups;
  for (const schedule::Exchange& exchange : schedule_.exchanges) {
    for (const schedule::Round& round : exchange.rounds) {
      if (round.collective) groups.push_back({schedule::name_of(exchange.kind), round.collective->ranks});
    }
  }
  comm_.join_groups(std::move(groups));
  for (const schedule::Exchange& exchange : schedule_.exchanges) {
    std::vector<comm::Round> rounds;
    for (const schedule::Round& round : exchange.rounds) rounds.push_back(placed(round, exchange.tag));
    transfers_.push_back(comm_.bind(rounds, schedule::name_of(exchange.kind)));
  }
}

/// Steps take what other ranks keep where it lies.
void Engine::connect() {
  shared_->connect();
  for (std::size_t step = 0; step < schedule_.steps.size(); ++step) {
    const std::vector<int>& arguments = schedule_.steps[step].arguments;
    if (!primitives_[step]) continue;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i] >= 0 && schedule_.buffers[static_cast<std::size_t>(arguments[i])].keeper >= 0)
        arguments_[step][i] = const_cast<std::byte*>(shared_->kept(arguments[i]));
    }
  }
  bind_messages();
}

void Engine::execute(std::size_t step, const kernels::Context& context) {
  const schedule::Step& work = schedule_.steps[step];
  if (primitives_[step]) {
    primitives_[step]->execute(context, arguments_[step], scratch_[step]);
    poll_.rethrow();
  } else if (const auto* start = std::get_if<schedule::Start>(&work.work)) {
    transfers_[static_cast<std::size_t>(start->exchange)]->start();
  } else {
    const std::int64_t begin = now_ns();
    const comm::Waiting waiting(comm_.watchdog(), work.name.c_str());
    const auto exchange = static_cast<std::size_t>(std::get<schedule::Finish>(work.work).exchange);
    transfers_[exchange]->wait();
    waited_ns_ += now_ns() - begin;
  }
}

/// After computing, lets messages move along: also those of others, such as the samples of the next step. True if it
/// did.
bool Engine::poll(std::size_t step) {
  if (!primitives_[step]) return false;
  comm_.progress();
  return true;
}

/// Runs all steps; what one of them throws names it.
template <class Execute>
void Engine::execute_all(Execute execute_step) {
  if (!std::exchange(connected_, true)) connect();
  waited_ns_ = 0;
  std::size_t step = 0;
  try {
    for (; step < primitives_.size(); ++step) execute_step(step);
  } catch (...) {
    const comm::Failure failure = comm::current_failure();
    throw base::Error(failure.code, schedule_.steps[step].name + ": " + failure.message);
  }
  add_up_losses();
}

kernels::Context Engine::own_context(kernels::Context context) {
  if (comm_.size() > 1) context.poll = &poll_;
  non_finite_ = false;
  context.non_finite = &non_finite_;
  return context;
}

void Engine::run(const kernels::Context& context) {
  const kernels::Context own = own_context(context);
  execute_all([&](std::size_t step) {
    execute(step, own);
    poll(step);
  });
}

void Engine::run(const kernels::Context& context, Trace& trace) {
  const kernels::Context own = own_context(context);
  execute_all([&](std::size_t step) {
    const std::int64_t begin = now_ns();
    execute(step, own);
    const std::int64_t end = now_ns();
    const bool polled = poll(step);
    trace.events.push_back(
        {.step = static_cast<int>(step), .begin_ns = begin, .end_ns = end, .polled_ns = polled ? now_ns() : end});
  });
}

void Engine::add_up_losses() {
  std::fill(losses_.begin(), losses_.end(), 0.0);
  for (const int loss : schedule_.losses) {
    const auto* terms =
        reinterpret_cast<const double*>(arena_->data() + placement_.offsets[static_cast<std::size_t>(loss)]);
    for (std::size_t i = 0; i < losses_.size(); ++i) losses_[i] += terms[i];
  }
}

std::string Engine::implementation(int step) const {
  const auto index = static_cast<std::size_t>(step);
  if (primitives_[index]) return primitives_[index]->name();
  return std::holds_alternative<schedule::Start>(schedule_.steps[index].work) ? "start" : "finish";
}

std::size_t Engine::item_count(int buffer) const {
  return static_cast<std::size_t>(schedule_.buffers[static_cast<std::size_t>(buffer)].bytes) / sizeof(float);
}

void Engine::read(int buffer, std::span<float> items) const {
  assert(items.size() == item_count(buffer));
  std::memcpy(items.data(), arena_->data() + placement_.offsets[static_cast<std::size_t>(buffer)], items.size_bytes());
}

void Engine::write(int buffer, std::span<const float> items) {
  assert(items.size() == item_count(buffer));
  std::memcpy(arena_->data() + placement_.offsets[static_cast<std::size_t>(buffer)], items.data(), items.size_bytes());
}

std::span<float> Engine::floats(int buffer) {
  const auto index = static_cast<std::size_t>(buffer);
  return {reinterpret_cast<float*>(arena_->data() + placement_.offsets[index]), item_count(buffer)};
}

std::span<const float> Engine::floats(int buffer) const { return const_cast<Engine*>(this)->floats(buffer); }

std::span<std::int32_t> Engine::labels(int buffer) {
  const std::span<float> memory = floats(buffer);
  return {reinterpret_cast<std::int32_t*>(memory.data()), memory.size()};
}

}  // namespace orthant::engine
