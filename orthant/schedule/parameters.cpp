#include "orthant/base/checked.hpp"
#include "orthant/schedule/lowering.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using model::Parameter;

constexpr std::int64_t float_bytes = sizeof(float);
/// Pieces of a bucket begin at multiples of this many items: a cache line.
constexpr std::int64_t line_items = 16;
/// Large enough that latency does not count, small enough that the first bucket leaves early in backward.
constexpr std::int64_t bucket_items = std::int64_t{1} << 19;

std::int64_t whole_lines(std::int64_t items) { return (items + line_items - 1) / line_items * line_items; }

/// Items of a bucket that the holder at `place` updates.
tensor::Range share_of_bucket(const Bucket& bucket, int place) {
  const int holders = static_cast<int>(bucket.holders.size());
  const std::int64_t lines = bucket.items / line_items;
  return {tensor::block_begin(lines, holders, place) * line_items,
          tensor::block_begin(lines, holders, place + 1) * line_items};
}

/// Items of a buffer as a box with nothing but channels.
Value items_of(int buffer, const tensor::Range& items) {
  tensor::Box box{.lo = {0, items.lo, 0, 0, 0}, .hi = {1, items.hi, 1, 1, 1}};
  tensor::Layout layout = tensor::channels_last(tensor::extents_of(box));
  layout.offset = items.lo;
  return {.buffer = buffer, .box = box, .layout = layout};
}

}  // namespace

/// Gives every parameter of this rank its memory: trained ones lie in buckets, in the order in which backward
/// finishes their gradients.
void Lowering::declare_parameters() {
  micro_ = &micros_.front();
  for (const Parameter& parameter : model::parameters(graph_)) {
    schedule_.parameters.push_back({.parameter = parameter,
                                    .shard = plan::shard_of(plan_, graph_, parameter, rank_),
                                    .holders = plan::shard_holders(plan_, graph_, parameter.node, rank_)});
  }
  const bool train = options_.mode == Mode::train;
  if (train) fill_buckets();
  for (ParameterBuffers& entry : schedule_.parameters) {
    const std::int64_t items = plan::count(entry.parameter, entry.shard);
    if (entry.value < 0 && items > 0)
      entry.value = add_buffer(entry.parameter.name, base::checked_mul(items, float_bytes), true);
  }
}

void Lowering::fill_buckets() {
  struct Member {
    int parameter;
    std::int64_t first_item;
  };
  std::vector<std::vector<Member>> members;
  std::vector<int> open;  // buckets with room
  for (int unit = static_cast<int>(units_.size()) - 1; unit >= 0; --unit) {
    for (int i = 0; i < static_cast<int>(schedule_.parameters.size()); ++i) {
      const ParameterBuffers& entry = at(schedule_.parameters, i);
      const std::int64_t items = plan::count(entry.parameter, entry.shard);
      if (entry.parameter.node != at(units_, unit).main || !entry.parameter.trainable || items == 0) continue;
      auto found = std::find_if(open.begin(), open.end(),
                                [&](int b) { return at(schedule_.buckets, b).holders == entry.holders; });
      if (found == open.end()) {
        found = open.insert(open.end(), static_cast<int>(schedule_.buckets.size()));
        schedule_.buckets.push_back({.name = entry.parameter.name, .holders = entry.holders});
        bucket_tag_.push_back(i);
        last_unit_.push_back(unit);
        members.emplace_back();
      }
      Bucket& bucket = at(schedule_.buckets, *found);
      at(members, *found).push_back({i, bucket.items});
      bucket.items = base::checked_add(bucket.items, whole_lines(items));
      at(last_unit_, *found) = unit;
      if (bucket.items >= bucket_items) open.erase(found);
    }
  }
  for (int b = 0; b < static_cast<int>(schedule_.buckets.size()); ++b) {
    Bucket& bucket = at(schedule_.buckets, b);
    const std::int64_t bytes = base::checked_mul(bucket.items, float_bytes);
    const auto place = std::find(bucket.holders.begin(), bucket.holders.end(), rank_) - bucket.holders.begin();
    bucket.own = share_of_bucket(bucket, static_cast<int>(place));
    bucket.value = add_buffer(bucket.name + ".bucket", bytes, true);
    bucket.gradient = add_buffer(bucket.name + ".bucket.gradient", bytes, !options_.update);
    at(schedule_.buffers, bucket.value).shared = options_.update && bucket.holders.size() > 1;
    at(schedule_.buffers, bucket.gradient).shared = bucket.holders.size() > 1 && reads_in_place();
    const int states = options_.update ? model::state_count(options_.optimizer) : 0;
    const std::int64_t own_bytes = (bucket.own.hi - bucket.own.lo) * float_bytes;
    for (int i = 0; i < states; ++i)
      bucket.state.push_back(add_buffer(bucket.name + ".bucket.state" + std::to_string(i), own_bytes, true));
    for (const Member& member : at(members, b)) {
      ParameterBuffers& entry = at(schedule_.parameters, member.parameter);
      const std::int64_t offset = member.first_item * float_bytes;
      const std::int64_t size = plan::count(entry.parameter, entry.shard) * float_bytes;
      entry.value = add_piece(entry.parameter.name, bucket.value, offset, size);
      entry.gradient = add_piece(entry.parameter.name + ".gradient", bucket.gradient, offset, size);
    }
  }
}

const ParameterBuffers* Lowering::parameter(int index, Parameter::Role role) const {
  const auto found = std::find_if(schedule_.parameters.begin(), schedule_.parameters.end(), [&](const auto& entry) {
    return entry.parameter.node == index && entry.parameter.role == role;
  });
  return found == schedule_.parameters.end() ? nullptr : &*found;
}

int Lowering::value_of(int index, Parameter::Role role) const {
  const ParameterBuffers* entry = parameter(index, role);
  return entry ? entry->value : -1;
}

int Lowering::gradient_of(int index, Parameter::Role role) const {
  const ParameterBuffers* entry = parameter(index, role);
  return entry ? entry->gradient : -1;
}

/// Channels of a node's parameters on this rank.
std::int64_t Lowering::channel_count(int index) const {
  const tensor::Distribution dst = plan::distribution(plan_, micro_->graph, index);
  if (!tensor::takes_part(dst, rank_)) return 0;
  const tensor::Range range =
      tensor::block(dst, tensor::Dim::c, tensor::coordinates(dst.grid, rank_ - dst.first_rank).c);
  return range.hi - range.lo;
}

/// A rank that computed nothing of a node adds nothing to its gradients.
void Lowering::zero_gradients(int index) {
  if (accumulates()) return;
  for (const ParameterBuffers& entry : schedule_.parameters) {
    if (entry.parameter.node != index || entry.gradient < 0) continue;
    const Value items = items_of(entry.gradient, {0, plan::count(entry.parameter, entry.shard)});
    emit(index, "zero_gradient", model::FillTask{.dst = items.layout}, {entry.gradient});
  }
}

void Lowering::zero_doubles(int index, int buffer, std::int64_t count) {
  if (count > 0) emit(index, "zero_sums", model::FillTask{.dst = items_of(buffer, {0, 2 * count}).layout}, {buffer});
}

/// For every other holder this rank's items of a bucket, and its own.
std::pair<Lowering::Placed, Lowering::Placed> Lowering::shares_of(const Bucket& bucket, int buffer) const {
  Placed mine;
  Placed theirs;
  for (int place = 0; place < static_cast<int>(bucket.holders.size()); ++place) {
    const int peer = at(bucket.holders, place);
    if (peer == rank_) continue;
    const tensor::Range items = share_of_bucket(bucket, place);
    if (bucket.own.hi > bucket.own.lo) mine.emplace_back(peer, items_of(buffer, bucket.own));
    if (items.hi > items.lo) theirs.emplace_back(peer, items_of(buffer, items));
  }
  return {mine, theirs};
}

/// Starts the sum over holders of the buckets that `unit` completes: each holder gets the sum of its own items.
void Lowering::reduce_gradients(int unit) {
  for (int b = 0; b < static_cast<int>(schedule_.buckets.size()); ++b) {
    if (at(last_unit_, b) != unit) continue;
    const Bucket& bucket = at(schedule_.buckets, b);
    if (bucket.holders.size() == 1) {
      if (options_.update) update(bucket, {});
      continue;
    }
    const auto [mine, theirs] = shares_of(bucket, bucket.gradient);
    tag_ = bucket_tags() + 2 * at(bucket_tag_, b);
    const bool in_place = at(schedule_.buffers, bucket.gradient).shared;
    reducing_.emplace_back(b, start(bucket.name + ".reduce", Kind::gradient, theirs, mine, true, in_place));
    finish_buckets(1);
  }
}

/// Ends sums until only `in_flight` are left; what comes of them goes to all holders.
void Lowering::finish_buckets(std::size_t in_flight) {
  while (reducing_.size() > in_flight) {
    auto [b, pending] = std::move(reducing_.front());
    reducing_.erase(reducing_.begin());
    const Bucket& bucket = at(schedule_.buckets, b);
    const std::vector<Value> arrived = std::move(pending.arrived);
    if (options_.update) pending.after.clear();  // the update itself adds what has arrived
    settle(std::move(pending));
    if (at(schedule_.buffers, bucket.gradient).shared) {
      if (!arrived.empty()) keep_gradients(1);
      read_by_others_.push_back(b);
    }
    if (options_.update) update(bucket, arrived);
    const auto [mine, theirs] = shares_of(bucket, options_.update ? bucket.value : bucket.gradient);
    tag_ = bucket_tags() + 2 * at(bucket_tag_, b) + 1;
    const Kind kind = options_.update ? Kind::weights : Kind::gradient;
    spreading_.push_back(start(bucket.name + ".spread", kind, mine, theirs, false));
  }
}

void Lowering::finish_parameters() {
  finish_buckets(0);
  for (Pending& pending : spreading_) settle(std::move(pending));
  spreading_.clear();
  keep_gradients(0);
}

/// True if ranks of one machine are to read each other's gradients in place: every rank has all parameters, so that all
/// have the same buckets, one after the other, and samples of its own. (Where space is cut, memory is what counts, and
/// gradients in place stay longer.)
bool Lowering::reads_in_place() const {
  return options_.update &&
         std::all_of(schedule_.parameters.begin(), schedule_.parameters.end(), [&](const auto& entry) {
           return static_cast<int>(entry.holders.size()) == plan_.ranks &&
                  planned(entry.parameter.node).grid.n == plan_.ranks;
         });
}

/// Keeps the memory of gradients that others read in place up to the finish that was just emitted, but for the last
/// `count` of them. Whose gradient of a bucket has come has read what it wanted of the last but one: the order of
/// reduce_gradients(). And whose new weights have come has read all.
void Lowering::keep_gradients(std::size_t count) {
  while (read_by_others_.size() > count) {
    schedule_.steps.back().arguments.push_back(at(schedule_.buckets, read_by_others_.front()).gradient);
    read_by_others_.erase(read_by_others_.begin());
  }
}

/// `arrived` has the other holders' gradients of this rank's items.
void Lowering::update(const Bucket& bucket, const std::vector<Value>& arrived) {
  const Phase before = phase_;
  phase_ = Phase::update;
  const std::int64_t count = bucket.own.hi - bucket.own.lo;
  if (count > 0) {
    const std::int64_t offset = bucket.own.lo * float_bytes;
    std::vector<int> arguments{bucket.value, bucket.gradient, -1, -1};
    if (bucket.holders.size() > 1) {
      arguments[0] = add_piece(bucket.name + ".own", bucket.value, offset, count * float_bytes);
      arguments[1] = add_piece(bucket.name + ".own.gradient", bucket.gradient, offset, count * float_bytes);
    }
    std::copy(bucket.state.begin(), bucket.state.end(), arguments.begin() + 2);
    for (const Value& part : arrived) {
      arguments.push_back(
          add_piece(bucket.name + ".arrived", part.buffer, part.layout.offset * float_bytes, count * float_bytes));
    }
    schedule_.steps.push_back({.name = bucket.name + ".update",
                               .node = current_node_,
                               .phase = phase_,
                               .work = model::UpdateTask{.optimizer = options_.optimizer,
                                                         .count = count,
                                                         .arrived = static_cast<int>(arrived.size())},
                               .arguments = std::move(arguments)});
  }
  phase_ = before;
}

}  // namespace orthant::schedule
