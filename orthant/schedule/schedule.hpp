#pragma once

#include "orthant/model/arguments.hpp"
#include "orthant/model/task.hpp"
#include "orthant/plan/machines.hpp"
#include "orthant/plan/share.hpp"

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace orthant::schedule {

enum class Phase { forward, backward, update };

/// Begins or ends an exchange of Schedule::exchanges. The arguments are the buffers its messages lie in, and those that
/// other ranks may have been reading until it ends.
struct Start {
  int exchange = -1;
};
struct Finish {
  int exchange = -1;
};

/// One computation of one rank, or the beginning or the end of messages. Steps run in order.
struct Step {
  std::string name;  ///< "conv1.backward_weights"
  int node = -1;     ///< the node it belongs to
  Phase phase = Phase::forward;
  std::variant<model::Task, Start, Finish> work;
  std::vector<int> arguments;                  ///< buffers in the order of model/argument_positions.hpp; -1 for null
  std::int64_t scratch_bytes = unknown_bytes;  ///< of memory that the task's kernel takes while it runs

  static constexpr std::int64_t unknown_bytes = -1;
};

/// Floating-point operations of a step; zero for messages.
std::int64_t flops(const Step& step);
/// model::bytes_moved of the arguments that the step has; zero for messages.
std::int64_t bytes_moved(const Step& step);

/// What becomes of the bytes of a message. Where they stay, the receiver is only told that they are complete.
enum class Transport {
  moved,     ///< to memory of the receiver
  in_place,  ///< they stay in the sender's memory, where the receiver reads them
  common     ///< the two ranks have the memory in common
};
const char* name_of(Transport transport);

/// A contiguous piece of a buffer that goes to or comes from another rank. What is received in place has a buffer of
/// its own, with the sender as its `keeper`.
struct Message {
  int peer = 0;
  int buffer = -1;
  std::int64_t offset_bytes = 0, bytes = 0;
  Transport transport = Transport::moved;
};

/// What a message is for; traffic is counted by it.
enum class Kind { halo, gather, redistribution, gradient, weights, statistics, loss };
const char* name_of(Kind kind);

/// A run of numbers in a buffer.
struct Piece {
  int buffer = -1;
  std::int64_t offset_bytes = 0;
};

/// dst = src, or dst += src: what becomes of something that has arrived. Items are floats or doubles.
struct Combination {
  Piece dst, src;
  std::int64_t count = 0;
  model::ItemType type = model::ItemType::float32;
  bool accumulate = true;
};

/// A collective of MPI among `ranks`, this one included, in place of messages of our own. The order of its sums is the
/// library's.
struct Collective {
  enum class Operation {
    all_reduce,      ///< dst (count) = the sum of src (count) of all
    reduce_scatter,  ///< dst (count) = this rank's part of the sum of src (count x ranks)
    all_gather       ///< dst (count x ranks) = src (count) of all in order; src is this rank's part of dst
  };
  Operation operation = Operation::all_reduce;
  std::vector<int> ranks{};
  Piece src, dst;
  std::int64_t count = 0;
  model::ItemType type = model::ItemType::float32;
};
const char* name_of(Collective::Operation operation);
/// What this rank hands to it, and what it gets back.
std::int64_t bytes_given(const Collective& collective);
std::int64_t bytes_taken(const Collective& collective);

/// Messages that begin together; when all of them have been taken and have arrived, the combinations are done in order.
/// Between two ranks messages of one tag match in order.
struct Round {
  std::vector<Message> sends{}, receives{};
  std::vector<Combination> combinations{};
  std::optional<Collective> collective{};  ///< instead of messages
};

/// Rounds that follow each other without being asked: they move along whenever the rank polls.
struct Exchange {
  std::string name;
  Kind kind = Kind::halo;
  int tag = 0;
  std::vector<Round> rounds;
};

/// True if there is something to wait for other than that what was sent is taken.
bool receives_something(const Exchange& exchange);

/// Calls visit(message, is_receive) for all messages in the order of rounds, sends first.
template <class Visit>
void for_each_message(const Exchange& exchange, Visit visit) {
  for (const Round& round : exchange.rounds) {
    for (const Message& message : round.sends) visit(message, false);
    for (const Message& message : round.receives) visit(message, true);
  }
}

/// A piece of the arena. Steps outside [first_step, last_step] may use its memory for something else.
struct Buffer {
  std::string name;
  std::int64_t bytes = 0;
  bool persistent = false;  ///< keeps its contents between runs: parameters, optimizer state, sources
  bool shared = false;      ///< ranks of this machine read it in place, or have it in common
  int keeper = -1;  ///< the rank of this machine in whose memory it lies, if that is another one: it is only read
  int first_step = -1, last_step = -1;
  int inside = -1;  ///< the buffer this one is a piece of, from `offset_bytes` on; -1 if it has memory of its own
  std::int64_t offset_bytes = 0;
};

/// This rank's shard of a parameter with the buffers that hold it and its gradient (-1 where there is none).
struct ParameterBuffers {
  model::Parameter parameter;
  plan::Shard shard;
  tensor::RankGroup holders{};  ///< the ranks that have the same shard
  int value = -1, gradient = -1;
  /// The items of the shard, in kernels' order, that this rank updates; the other holders update the rest.
  tensor::Range updated{};
  std::vector<Piece> state{};  ///< the optimizer's state of those items, for each number per item
};

/// Parameters whose gradients are summed and that are updated together: consecutive pieces of `value` and `gradient`.
/// Of the ranks that hold them each updates its own items, for which alone it keeps the optimizer's state.
struct Bucket {
  std::string name;
  tensor::RankGroup holders{};
  int value = -1, gradient = -1;
  std::vector<int> state{};
  std::int64_t items = 0;
  tensor::Range own{};        ///< items
  std::vector<int> common{};  ///< the holders of this machine, if they have one memory for `value`
  int tag = 0;                ///< of the exchange that spreads its results; it tells buckets apart on all ranks
};

/// A tensor that enters or leaves the step: the box of the mini-batch that this rank has, and where.
struct Port {
  int buffer = -1;
  tensor::Box box;
  tensor::Layout layout;
};

/// What one rank does in one training step, in order, and the memory it needs. Pure value.
struct Schedule {
  std::vector<Step> steps;
  std::vector<Exchange> exchanges;
  std::vector<Buffer> buffers;
  std::vector<ParameterBuffers> parameters;
  std::vector<Bucket> buckets;
  /// One per micro-batch. Inputs include the halo that the first layers read; targets are int32 with `labels`.
  std::vector<Port> inputs, targets, outputs;
  /// Evaluation with `keep_output`, per micro-batch: the output cut as the target is, all channels of a pixel together.
  std::vector<Port> predictions;
  std::vector<Port> input_gradients;  ///< only if asked for
  std::vector<int> losses;            ///< per micro-batch: one double per term, then their weighted sum
  bool labels = false;                ///< the target is int32 labels
};

enum class Mode { train, evaluate };

/// Weights of a convolution as its kernel reads them, made by a step of their own. 0 bytes: it takes them as they are.
/// Convolutions of the same weights with equal forms share them.
struct PreparedWeights {
  std::int64_t bytes = 0;
  std::string form{};
};

/// What kernels need besides their arguments, as a machine answers it. Empty functions know nothing.
struct KernelNeeds {
  std::function<std::int64_t(const model::Task&)> scratch_bytes{};
  std::function<PreparedWeights(const model::ConvTask&)> prepared_weights{};
};

struct LowerOptions {
  Mode mode = Mode::train;
  model::Optimizer optimizer{};
  bool update = true;           ///< false: forward and backward only; all holders of a parameter get its gradient
  bool input_gradient = false;  ///< also the gradient of the input
  bool keep_output = false;     ///< outputs and predictions keep their memory to the end of the run
  /// On this machine. Without it only convolutions have scratch memory: as much as the plan says.
  KernelNeeds needs{};
  plan::Machines machines{};  ///< that the ranks run on
  bool shares_memory = true;  ///< ranks of one machine can read each other's memory
  /// Smaller messages move even where they could be read in place: copying them is faster.
  std::int64_t least_bytes_in_place = 64 << 10;
};

/// The steps of `rank` under `plan`.
Schedule lower(const model::Graph& graph, const plan::Plan& plan, int rank, const LowerOptions& options);

/// Messages that the rank sends in one step, of one kind, and their bytes: those that move, and those that stay where
/// they are and are only announced. A collective of MPI counts as one message with the bytes that are handed to it.
struct Volume {
  std::int64_t messages = 0, bytes = 0, announced_bytes = 0;
  bool operator==(const Volume&) const = default;
};
Volume sent(const Schedule& schedule, Kind kind);
/// Of all kinds.
Volume sent(const Schedule& schedule);
/// Of one exchange.
Volume sent(const Exchange& exchange);

/// How many messages the rank sends and receives in one step, each of which MPI keeps a request for.
std::int64_t request_count(const Schedule& schedule);

/// Where each buffer lies in the arena, and how large the arena is. Buffers whose lifetimes do not meet may share
/// memory.
struct Placement {
  std::vector<std::int64_t> offsets;          ///< per buffer
  std::vector<std::int64_t> scratch_offsets;  ///< per step
  std::int64_t arena_bytes = 0;
  std::int64_t persistent_bytes = 0;  ///< of which persistent
  std::int64_t shared_bytes = 0;      ///< where shared buffers lie: the arena's first pages
};

/// Bytes of all buffers of this rank that are alive during each step, without scratch memory. An arena cannot be
/// smaller than these and the scratch memory of any step together.
std::vector<std::int64_t> live_bytes(const Schedule& schedule);

/// What a buffer that is persistent and shared takes.
std::int64_t whole_pages(std::int64_t bytes);

/// Finds the places of all buffers and of the scratch memory of steps, as far as it is known.
Placement place(const Schedule& schedule);

}  // namespace orthant::schedule
