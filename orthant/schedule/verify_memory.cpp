#include "orthant/base/format.hpp"
#include "orthant/schedule/verification.hpp"

#include <algorithm>
#include <set>

namespace orthant::schedule {
namespace {

using model::Access;

/// Bytes of a root that a message in flight comes from or goes to.
struct InFlight {
  int exchange = -1;
  int root = -1;
  bool is_receive = false;
  ByteSet bytes;
  int until = -1;  ///< the step it ends in
};

/// True if the items of both have the same places: one may be read and the other written, item by item.
bool are_same_items(const Touch& a, const Touch& b) {
  const auto first_byte = [](const Touch& touch) {
    return touch.first_byte + touch.argument.touched.offset * model::bytes_of(touch.argument.type);
  };
  const tensor::Layout& x = a.argument.touched;
  const tensor::Layout& y = b.argument.touched;
  if (a.argument.type != b.argument.type || x.extents != y.extents || first_byte(a) != first_byte(b)) return false;
  return std::all_of(tensor::all_dims.begin(), tensor::all_dims.end(),
                     [&](tensor::Dim dim) { return x.extents[dim] == 1 || x.strides[dim] == y.strides[dim]; });
}

/// Follows what is written, step by step.
class Walk {
 public:
  explicit Walk(const Schedule& schedule) : schedule_(schedule), footprints_(schedule), flights_(flights_of(schedule)) {
    for (int i = 0; i < static_cast<int>(schedule.buffers.size()); ++i) written_.push_back(footprints_.nothing(i));
    fill_at_the_beginning();
  }

  Mistakes run() {
    for (step_ = 0; step_ < static_cast<int>(schedule_.steps.size()); ++step_) {
      std::erase_if(in_flight_, [&](const InFlight& one) { return one.until <= step_; });
      const auto& work = schedule_.steps[static_cast<std::size_t>(step_)].work;
      if (const auto* start = std::get_if<Start>(&work)) {
        begin(start->exchange);
      } else if (std::holds_alternative<model::Task>(work)) {
        compute();
      }
    }
    check_results();
    for (const Bucket& bucket : schedule_.buckets) check_common_weights(bucket);
    return std::move(mistakes_);
  }

 private:
  [[nodiscard]] const Exchange& exchange(int index) const {
    return schedule_.exchanges[static_cast<std::size_t>(index)];
  }
  ByteSet& written(int buffer) { return written_[static_cast<std::size_t>(root_of(schedule_, buffer))]; }
  [[nodiscard]] const std::string& root_name(int buffer) const {
    return buffer_of(schedule_, root_of(schedule_, buffer)).name;
  }
  [[nodiscard]] const std::string& step_name() const { return schedule_.steps[static_cast<std::size_t>(step_)].name; }

  /// Persistent buffers have their contents from the beginning, except for those that the run itself writes.
  void fill_at_the_beginning() {
    std::set<int> made;
    for (const int loss : schedule_.losses) made.insert(root_of(schedule_, loss));
    for (const Port& port : schedule_.input_gradients)
      if (port.buffer >= 0) made.insert(root_of(schedule_, port.buffer));
    for (const Bucket& bucket : schedule_.buckets) made.insert(bucket.gradient);
    for (int i = 0; i < static_cast<int>(schedule_.buffers.size()); ++i) {
      const Buffer& buffer = buffer_of(schedule_, i);
      if (buffer.inside < 0 && buffer.persistent && !made.contains(i)) written(i).add(tensor::Range{0, buffer.bytes});
    }
  }

  void check_read(int root, const ByteSet& bytes, const std::string& what) {
    const tensor::Range missing = written(root).missing(bytes);
    if (missing == tensor::Range{}) return;
    mistakes_.push_back(fmt::format("step {}, {}: {} reads bytes {} to {} of {} before they are written", step_,
                                    step_name(), what, missing.lo, missing.hi, root_name(root)));
  }

  /// What is received may not be touched, what is sent may not be written.
  void check_flight(int root, const ByteSet& bytes, bool writes, const std::string& what) {
    for (const InFlight& one : in_flight_) {
      if (one.root != root || !(writes || one.is_receive)) continue;
      const tensor::Range common = one.bytes.common(bytes);
      if (common == tensor::Range{}) continue;
      mistakes_.push_back(fmt::format("step {}, {}: {} {} bytes {} to {} of {} while {} {} them", step_, step_name(),
                                      what, writes ? "writes" : "reads", common.lo, common.hi, root_name(root),
                                      exchange(one.exchange).name, one.is_receive ? "receives" : "sends"));
    }
  }

  /// Something that an exchange reads or writes.
  struct Use {
    Piece piece;
    std::int64_t bytes = 0;
    bool writes = false;
    bool adds = false;  ///< reads what it writes
    std::string what;
  };

  static Use use_of(const Message& message, bool is_receive) {
    return {{message.buffer, message.offset_bytes},
            message.bytes,
            is_receive,
            false,
            fmt::format("the message {} rank {}", is_receive ? "from" : "to", message.peer)};
  }

  /// What the messages of a round use, or its collective: all at once.
  static std::vector<Use> uses_of(const Round& round) {
    std::vector<Use> uses;
    for (const Message& message : round.sends) uses.push_back(use_of(message, false));
    for (const Message& message : round.receives) uses.push_back(use_of(message, true));
    if (const auto& one = round.collective) {
      uses.push_back({one->src, bytes_given(*one), false, false, "what is given to MPI"});
      uses.push_back({one->dst, bytes_taken(*one), true, false, "what comes from MPI"});
    }
    return uses;
  }

  /// The rounds follow each other until the exchange ends. Nobody else may touch what any of them writes, or write what
  /// any of them reads, so what they bring counts as written from the beginning.
  void begin(int index) {
    for (const Round& round : exchange(index).rounds) {
      const std::vector<Use> uses = uses_of(round);
      for (const Use& use : uses) check_use(use);
      check_together(index, round, uses);
      for (const Use& use : uses) apply(use);
      for (const Combination& one : round.combinations) {
        const std::int64_t bytes = one.count * model::bytes_of(one.type);
        const Use src{one.src, bytes, false, false, "what is combined"};
        const Use dst{one.dst, bytes, true, one.accumulate, "what is combined"};
        check_use(src);
        check_use(dst);
        apply(dst);
      }
    }
    for (const Round& round : exchange(index).rounds) add_flights(index, round);
  }

  void check_use(const Use& use) {
    const ByteSet bytes = footprints_.of(use.piece, use.bytes);
    const int root = root_of(schedule_, use.piece.buffer);
    if (!use.writes || use.adds) check_read(root, bytes, use.what);
    check_flight(root, bytes, use.writes, use.what);
  }

  void apply(const Use& use) {
    if (use.writes) written(use.piece.buffer).add(footprints_.of(use.piece, use.bytes));
  }

  /// What one message of a round brings is neither sent nor received by another. MPI gathers in place.
  void check_together(int index, const Round& round, const std::vector<Use>& uses) {
    if (round.collective && round.collective->operation == Collective::Operation::all_gather) return;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      for (std::size_t k = 0; k < uses.size(); ++k) {
        if (i == k || !uses[i].writes || (uses[k].writes && k < i)) continue;
        const int root = root_of(schedule_, uses[i].piece.buffer);
        if (root != root_of(schedule_, uses[k].piece.buffer)) continue;
        const tensor::Range common =
            footprints_.of(uses[i].piece, uses[i].bytes).common(footprints_.of(uses[k].piece, uses[k].bytes));
        if (common == tensor::Range{}) continue;
        mistakes_.push_back(fmt::format("step {}, {}: {} writes bytes {} to {} of {} while {} {} them", step_,
                                        step_name(), uses[i].what, common.lo, common.hi, root_name(root),
                                        exchange(index).name, uses[k].writes ? "receives" : "sends"));
      }
    }
  }

  void add_flights(int index, const Round& round) {
    for (const Message& message : round.sends) add_flight(index, message);
    const int until = flights_[static_cast<std::size_t>(index)].finish;
    const auto add = [&](const Piece& piece, std::int64_t bytes, bool is_receive) {
      in_flight_.push_back({.exchange = index,
                            .root = root_of(schedule_, piece.buffer),
                            .is_receive = is_receive,
                            .bytes = footprints_.of(piece, bytes),
                            .until = until});
    };
    for (const Message& message : round.receives) add({message.buffer, message.offset_bytes}, message.bytes, true);
    for (const Combination& one : round.combinations) {
      add(one.src, one.count * model::bytes_of(one.type), false);
      add(one.dst, one.count * model::bytes_of(one.type), true);
    }
    if (!round.collective) return;
    add(round.collective->src, bytes_given(*round.collective), false);
    add(round.collective->dst, bytes_taken(*round.collective), true);
  }

  void add_flight(int index, const Message& message) {
    int until = flights_[static_cast<std::size_t>(index)].finish;
    if (message.transport == Transport::in_place) {
      const int release = release_of(schedule_, message);
      if (release <= until) {
        mistakes_.push_back(fmt::format("{} is read in place by rank {}, and nothing says until when",
                                        root_name(message.buffer), message.peer));
      }
      until = std::max(until, release);
    }
    in_flight_.push_back({.exchange = index,
                          .root = root_of(schedule_, message.buffer),
                          .is_receive = false,
                          .bytes = footprints_.of(message),
                          .until = until});
  }

  void compute() {
    const std::vector<Touch> touches = footprints_.of(schedule_.steps[static_cast<std::size_t>(step_)]);
    for (const Touch& touch : touches) {
      const bool writes = touch.argument.access != Access::read;
      const std::string what(touch.argument.position.name);
      if (touch.argument.access != Access::write) check_read(touch.root, touch.bytes, what);
      check_flight(touch.root, touch.bytes, writes, what);
      if (writes) check_keeper(touch);
      if (writes) check_overlaps(touches, touch);
    }
    for (const Touch& touch : touches) {
      if (touch.argument.access != Access::read) written(touch.root).add(touch.bytes);
    }
  }

  /// What another rank keeps is only read.
  void check_keeper(const Touch& target) {
    const int keeper = buffer_of(schedule_, target.root).keeper;
    if (keeper < 0) return;
    mistakes_.push_back(fmt::format("step {}, {}: {} writes {}, which rank {} keeps", step_, step_name(),
                                    target.argument.position.name, root_name(target.root), keeper));
  }

  void check_overlaps(const std::vector<Touch>& touches, const Touch& target) {
    for (const Touch& other : touches) {
      // The pieces of one argument are done one after the other.
      if (other.argument.position == target.argument.position || other.root != target.root ||
          other.bytes.common(target.bytes) == tensor::Range{})
        continue;
      if (target.argument.in_place && other.argument.access == Access::read && are_same_items(other, target)) continue;
      mistakes_.push_back(fmt::format("step {}, {}: {} writes over {} in {}", step_, step_name(),
                                      target.argument.position.name, other.argument.position.name,
                                      root_name(target.root)));
    }
  }

  /// A rank that has sent the gradient of items that another rank updates must not read those weights, if it has them
  /// in common with that rank, until it is told that the new values are complete.
  void check_common_weights(const Bucket& bucket) {
    if (bucket.common.empty()) return;
    for (std::size_t i = 0; i < flights_.size(); ++i) {
      for_each_message(schedule_.exchanges[i], [&](const Message& message, bool is_receive) {
        if (!is_receive || message.transport != Transport::common || root_of(schedule_, message.buffer) != bucket.value)
          return;
        const ByteSet bytes = footprints_.of(message);
        const int sent = start_of_gradient(bucket, message);
        if (sent < 0) {
          mistakes_.push_back(fmt::format("{} brings weights of rank {} that had no gradient from here",
                                          schedule_.exchanges[i].name, message.peer));
        }
        for (int step = std::max(sent, 0) + 1; sent >= 0 && step < flights_[i].start; ++step)
          check_common_weights(bucket, message.peer, bytes, schedule_.steps[static_cast<std::size_t>(step)]);
      });
    }
  }

  void check_common_weights(const Bucket& bucket, int peer, const ByteSet& bytes, const Step& step) {
    for (const Touch& touch : footprints_.of(step)) {
      if (touch.root != bucket.value || touch.bytes.common(bytes) == tensor::Range{}) continue;
      mistakes_.push_back(fmt::format("{}: {} touches {}, which rank {} may be updating", step.name,
                                      touch.argument.position.name, root_name(bucket.value), peer));
    }
  }

  /// The step that begins to send the gradient of these weights to the rank that they come from, or -1.
  [[nodiscard]] int start_of_gradient(const Bucket& bucket, const Message& weights) const {
    int start = -1;
    for (std::size_t i = 0; i < flights_.size() && start < 0; ++i) {
      for_each_message(schedule_.exchanges[i], [&](const Message& message, bool is_receive) {
        if (!is_receive && message.peer == weights.peer && root_of(schedule_, message.buffer) == bucket.gradient &&
            message.offset_bytes == weights.offset_bytes && message.bytes == weights.bytes)
          start = flights_[i].start;
      });
    }
    return start;
  }

  /// What the run is for must be there at its end.
  void check_results() {
    const auto check = [&](int buffer, const ByteSet& bytes) {
      const tensor::Range missing = written(buffer).missing(bytes);
      if (missing == tensor::Range{}) return;
      mistakes_.push_back(
          fmt::format("bytes {} to {} of {} are never written", missing.lo, missing.hi, root_name(buffer)));
    };
    for (const int loss : schedule_.losses) check(loss, footprints_.bytes(loss, {0, buffer_of(schedule_, loss).bytes}));
    for (const auto* ports : {&schedule_.input_gradients, &schedule_.predictions}) {
      for (const Port& port : *ports) {
        if (port.buffer >= 0) check(port.buffer, footprints_.of(port));
      }
    }
    for (const ParameterBuffers& entry : schedule_.parameters) {
      if (entry.gradient < 0) continue;
      const Buffer& piece = buffer_of(schedule_, entry.gradient);
      check(entry.gradient, footprints_.bytes(entry.gradient, {piece.offset_bytes, piece.offset_bytes + piece.bytes}));
    }
  }

  const Schedule& schedule_;
  Footprints footprints_;
  std::vector<Flight> flights_;
  std::vector<ByteSet> written_;  ///< per root
  std::vector<InFlight> in_flight_;
  int step_ = 0;
  Mistakes mistakes_;
};

}  // namespace

Mistakes check_memory(const Schedule& schedule) { return Walk(schedule).run(); }

}  // namespace orthant::schedule
