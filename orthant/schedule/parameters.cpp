#include "orthant/schedule/parameters.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/error.hpp"
#include "orthant/model/argument_positions.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using model::Parameter;

/// Parameters begin in a bucket at multiples of this many items: a cache line.
constexpr std::int64_t line_items = 16;
/// Large enough that latency does not count, small enough that the first bucket leaves early in backward. In large
/// groups every owner has at least a few lines, so that little is lost where these do not divide.
std::int64_t bucket_items(int holders) {
  constexpr std::int64_t usual = std::int64_t{1} << 19;
  return std::max(usual, 16 * line_items * holders);
}

std::int64_t whole_lines(std::int64_t items) { return (items + line_items - 1) / line_items * line_items; }

}  // namespace

Parameters::Parameters(const Analysis& analysis, int rank, const LowerOptions& options, Emitter& emitter,
                       Exchanges& exchanges, Schedule& schedule)
    : analysis_(analysis),
      rank_(rank),
      options_(options),
      emitter_(emitter),
      exchanges_(exchanges),
      schedule_(schedule),
      tags_(tags_of(analysis)) {
  for (const Parameter& parameter : model::parameters(analysis.graph())) {
    schedule.parameters.push_back(
        {.parameter = parameter,
         .shard = plan::shard_of(analysis.plan(), analysis.graph(), parameter, rank),
         .holders = plan::shard_holders(analysis.plan(), analysis.graph(), parameter.node, rank)});
  }
  if (options.mode == Mode::train) {
    fill_buckets();
    for (int bucket = 0; bucket < static_cast<int>(schedule.buckets.size()); ++bucket) declare_bucket(bucket);
  }
  for (ParameterBuffers& entry : schedule.parameters) {
    const std::int64_t items = plan::count(entry.parameter, entry.shard);
    if (entry.value < 0 && items > 0)
      entry.value = emitter.add_buffer(entry.parameter.name, base::checked_mul(items, float_bytes), true);
  }
}

/// Parameters of the same holders share buckets, in the order of backward.
void Parameters::fill_buckets() {
  std::vector<int> open;  // buckets with room
  for (int unit = static_cast<int>(analysis_.units().size()) - 1; unit >= 0; --unit) {
    for (int i = 0; i < static_cast<int>(schedule_.parameters.size()); ++i) {
      const ParameterBuffers& entry = at(schedule_.parameters, i);
      const std::int64_t items = plan::count(entry.parameter, entry.shard);
      if (entry.parameter.node != at(analysis_.units(), unit).main || !entry.parameter.trainable || items == 0)
        continue;
      auto found = std::find_if(open.begin(), open.end(),
                                [&](int b) { return at(schedule_.buckets, b).holders == entry.holders; });
      if (found == open.end()) {
        found = open.insert(open.end(), static_cast<int>(schedule_.buckets.size()));
        schedule_.buckets.push_back({.name = entry.parameter.name, .holders = entry.holders});
        fillings_.emplace_back();
      }
      Bucket& bucket = at(schedule_.buckets, *found);
      Filling& filling = at(fillings_, *found);
      filling.members.push_back({i, bucket.items});
      filling.last_unit = unit;
      bucket.items = base::checked_add(bucket.items, whole_lines(items));
      if (bucket.items >= bucket_items(bucket.holders.size())) open.erase(found);
    }
  }
}

/// Gives a bucket and its members their memory.
void Parameters::declare_bucket(int index) {
  Bucket& bucket = at(schedule_.buckets, index);
  const Levels& levels = exchanges_.levels(bucket.holders);
  BucketParts& parts = at(fillings_, index).parts;
  parts = parts_of_bucket(levels, exchanges_.forms().buckets, bucket.items, line_items);
  bucket.items = parts.items();
  bucket.own = parts.own(levels);
  const std::int64_t bytes = base::checked_mul(bucket.items, float_bytes);
  bucket.value = emitter_.add_buffer(bucket.name + ".bucket", bytes, true);
  bucket.gradient = emitter_.add_buffer(bucket.name + ".bucket.gradient", bytes, !options_.update);
  bucket.tag = tags_.results(at(fillings_, index).members.front().parameter);
  if (options_.update && options_.shares_memory && levels.inside.size() > 1) bucket.common = levels.inside.to_list();
  emitter_.buffer(bucket.value).shared = !bucket.common.empty();
  emitter_.buffer(bucket.gradient).shared = stays(bucket, parts);
  const int states = options_.update ? model::state_count(options_.optimizer) : 0;
  const std::int64_t own_bytes = (bucket.own.hi - bucket.own.lo) * float_bytes;
  for (int i = 0; i < states; ++i)
    bucket.state.push_back(emitter_.add_buffer(bucket.name + ".bucket.state" + std::to_string(i), own_bytes, true));
  for (const Filling::Member& member : at(fillings_, index).members) {
    ParameterBuffers& entry = at(schedule_.parameters, member.parameter);
    const std::int64_t offset = member.first_item * float_bytes;
    const std::int64_t size = plan::count(entry.parameter, entry.shard) * float_bytes;
    entry.value = emitter_.add_piece(entry.parameter.name, bucket.value, offset, size);
    entry.gradient = emitter_.add_piece(entry.parameter.name + ".gradient", bucket.gradient, offset, size);
    declare_state(bucket, member, entry);
  }
}

/// What this rank updates of a member lies together, and so does its state.
void Parameters::declare_state(const Bucket& bucket, const Filling::Member& member, ParameterBuffers& entry) {
  const std::int64_t items = plan::count(entry.parameter, entry.shard);
  entry.updated = {std::clamp<std::int64_t>(bucket.own.lo - member.first_item, 0, items),
                   std::clamp<std::int64_t>(bucket.own.hi - member.first_item, 0, items)};
  const std::int64_t count = entry.updated.hi - entry.updated.lo;
  if (count == 0) return;
  const std::int64_t first = member.first_item + entry.updated.lo - bucket.own.lo;
  for (const int state : bucket.state) entry.state.push_back({.buffer = state, .offset_bytes = first * float_bytes});
}

const ParameterBuffers* Parameters::find(int node, Parameter::Role role) const {
  const auto found = std::find_if(schedule_.parameters.begin(), schedule_.parameters.end(), [&](const auto& entry) {
    return entry.parameter.node == node && entry.parameter.role == role;
  });
  return found == schedule_.parameters.end() ? nullptr : &*found;
}

int Parameters::value_of(int node, Parameter::Role role) const {
  const ParameterBuffers* entry = find(node, role);
  return entry ? entry->value : -1;
}

int Parameters::gradient_of(int node, Parameter::Role role) const {
  const ParameterBuffers* entry = find(node, role);
  return entry ? entry->gradient : -1;
}

void Parameters::zero_gradients(int node) {
  for (const ParameterBuffers& entry : schedule_.parameters) {
    if (entry.parameter.node != node || entry.gradient < 0) continue;
    const Value items = items_of(entry.gradient, {0, plan::count(entry.parameter, entry.shard)});
    emitter_.emit(node, "zero_gradient", model::FillTask{.dst = items.layout}, {entry.gradient});
  }
}

void Parameters::reduce(int unit) {
  for (int b = 0; b < static_cast<int>(schedule_.buckets.size()); ++b) {
    if (at(fillings_, b).last_unit != unit) continue;
    if (options_.update || at(schedule_.buckets, b).holders.size() > 1) clear_gaps(b);
    const Bucket& bucket = at(schedule_.buckets, b);
    if (bucket.holders.size() == 1) {
      if (options_.update) update(bucket, {});
      continue;
    }
    // Members of a collective may have other buckets in between; all must call MPI in the same order.
    const bool in_turn = exchanges_.forms().buckets.form == plan::Form::mpi;
    if (in_turn) finish_reductions(0);
    start_reduction(b);
    finish_reductions(1);
  }
}

/// The padding between the gradients of a bucket is summed and used for updates with them: it must not be what other
/// tensors have left in the same memory, which may not even be finite.
void Parameters::clear_gaps(int index) {
  const Bucket bucket = at(schedule_.buckets, index);
  const auto clear = [&](std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    const int gap =
        emitter_.add_piece(bucket.name + ".gap", bucket.gradient, begin * float_bytes, (end - begin) * float_bytes);
    emitter_.emit(emitter_.node(), "clear_gap", model::FillTask{.dst = items_of(gap, {0, end - begin}).layout}, {gap});
  };
  std::int64_t end = 0;
  for (const Filling::Member& member : at(fillings_, index).members) {
    clear(end, member.first_item);
    const ParameterBuffers& entry = at(schedule_.parameters, member.parameter);
    end = member.first_item + plan::count(entry.parameter, entry.shard);
  }
  clear(end, bucket.items);
}

void Parameters::start_reduction(int index) {
  const Bucket bucket = at(schedule_.buckets, index);
  const Levels& levels = exchanges_.levels(bucket.holders);
  const std::string name = bucket.name + ".reduce";
  const BucketParts& parts = at(fillings_, index).parts;
  BucketExchange exchange{.levels = levels,
                          .form = exchanges_.forms().buckets,
                          .parts = parts,
                          .buffer = bucket.gradient,
                          .staging = static_cast<int>(schedule_.buffers.size())};
  const int staging = emitter_.add_buffer(name + ".arrived", 0);
  if (emitter_.buffer(bucket.gradient).shared) {
    exchange.inside = Transport::in_place;
    const std::int64_t bytes = (parts.region(0).hi - parts.region(0).lo) * float_bytes;
    for (int i = 0; levels.is_active() && i < levels.inside.size(); ++i) {
      if (levels.inside[i] == rank_) continue;
      exchange.kept.push_back(emitter_.add_buffer(name + ".kept" + std::to_string(i), bytes));
      emitter_.buffer(exchange.kept.back()).keeper = levels.inside[i];
    }
  }
  BucketRounds made = reduce_rounds(exchange, options_.update);
  emitter_.buffer(staging).bytes = made.staging_bytes;
  exchanges_.set_tag(tags_.gradients(at(fillings_, index).members.front().parameter));
  reducing_.push_back({.bucket = index,
                       .exchange = exchanges_.start(name, Kind::gradient, std::move(made.rounds)),
                       .arrived = std::move(made.arrived)});
}

void Parameters::start_spreading(int index) {
  const Bucket& bucket = at(schedule_.buckets, index);
  const BucketExchange exchange{.levels = exchanges_.levels(bucket.holders),
                                .form = exchanges_.forms().buckets,
                                .parts = at(fillings_, index).parts,
                                .buffer = options_.update ? bucket.value : bucket.gradient,
                                .inside = bucket.common.empty() ? Transport::moved : Transport::common};
  exchanges_.set_tag(bucket.tag);
  spreading_.push_back(exchanges_.start(bucket.name + ".spread", options_.update ? Kind::weights : Kind::gradient,
                                        spread_rounds(exchange).rounds));
}

/// Ends sums until only `in_flight` are left, and sends what comes of them to all holders.
void Parameters::finish_reductions(std::size_t in_flight) {
  while (reducing_.size() > in_flight) {
    const Reducing ended = std::move(reducing_.front());
    reducing_.erase(reducing_.begin());
    const Bucket& bucket = at(schedule_.buckets, ended.bucket);
    exchanges_.finish(ended.exchange);
    if (emitter_.buffer(bucket.gradient).shared) {
      if (receives_something(at(schedule_.exchanges, ended.exchange))) release_gradients(1);
      read_by_others_.push_back(ended.bucket);
    }
    if (options_.update) update(bucket, ended.arrived);
    start_spreading(ended.bucket);
  }
}

void Parameters::finish() {
  finish_reductions(0);
  for (const int exchange : spreading_) exchanges_.finish(exchange);
  spreading_.clear();
  release_gradients(0);
}

/// True if ranks of one machine are to read each other's gradients in place: every rank has all parameters, so that all
/// have the same buckets in the same order, and samples of its own. (Where space is cut, memory is what counts, and
/// gradients that are read in place stay longer.)
bool Parameters::reads_in_place() const {
  return options_.update &&
         std::all_of(schedule_.parameters.begin(), schedule_.parameters.end(), [&](const auto& entry) {
           return entry.holders.size() == analysis_.plan().ranks &&
                  analysis_.planned(entry.parameter.node).grid.n == analysis_.plan().ranks;
         });
}

/// True if the holders of this machine read their regions of the bucket's gradient in each other's memory.
bool Parameters::stays(const Bucket& bucket, const BucketParts& parts) {
  const std::int64_t bytes = (parts.region(0).hi - parts.region(0).lo) * float_bytes;
  return options_.shares_memory && exchanges_.levels(bucket.holders).inside.size() > 1 && reads_in_place() &&
         bytes >= options_.least_bytes_in_place;
}

/// Lets the memory of gradients that other ranks read in place be used again after the finish that was just emitted,
/// but for the last `count` buckets of them.
///
/// Proof that they have been read. Let the finish be that of reducing bucket b. Its first round had messages from all
/// other holders of this machine, each of which had started to reduce bucket b before. reduce() starts bucket b only
/// after finish_reductions(1) has ended the reduction of every bucket before b - 1. What reads gradients in place is a
/// combination of that reduction, or, where it has one round, the update that follows its end. So all these holders
/// have read what they wanted of every bucket up to b - 2: all of `read_by_others_` but the last one, b - 1. Likewise,
/// when the new weights of a bucket have come from a holder of this machine, that holder has done the update that they
/// come from, and with it read the gradients of that bucket: after the last finish nothing is left to wait for. (A
/// holder that is not active reads nothing and has nothing to tell.)
void Parameters::release_gradients(std::size_t count) {
  while (read_by_others_.size() > count) {
    emitter_.add_argument(at(schedule_.buckets, read_by_others_.front()).gradient);
    read_by_others_.erase(read_by_others_.begin());
  }
}

/// `arrived` has the other holders' gradients of this rank's items.
void Parameters::update(const Bucket& bucket, const std::vector<Piece>& arrived) {
  const Phase before = emitter_.phase();
  emitter_.set_phase(Phase::update);
  const std::int64_t count = bucket.own.hi - bucket.own.lo;
  if (count > 0) {
    const std::int64_t offset = bucket.own.lo * float_bytes;
    std::vector<int> arguments{bucket.value, bucket.gradient};
    if (bucket.holders.size() > 1) {
      arguments[0] = emitter_.add_piece(bucket.name + ".own", bucket.value, offset, count * float_bytes);
      arguments[1] = emitter_.add_piece(bucket.name + ".own.gradient", bucket.gradient, offset, count * float_bytes);
    }
    arguments.insert(arguments.end(), bucket.state.begin(), bucket.state.end());
    if (arguments.size() > model::at::update::arrived)
      base::fail(base::Exit::internal, "{} states of an optimizer; an update takes {}; please report this",
                 bucket.state.size(), model::at::update::arrived - model::at::update::state0);
    arguments.resize(model::at::update::kept, -1);
    // What has moved here lies in one buffer, part by part; what has not, in a buffer of each keeper.
    int moved = 0;
    for (const Piece& part : arrived) {
      if (emitter_.buffer(part.buffer).keeper >= 0) {
        arguments.push_back(part.buffer);
      } else {
        arguments[model::at::update::arrived] = part.buffer;
        ++moved;
      }
    }
    emitter_.emit({.name = bucket.name + ".update",
                   .node = emitter_.node(),
                   .phase = Phase::update,
                   .work = model::UpdateTask{.optimizer = options_.optimizer,
                                             .count = count,
                                             .arrived = moved,
                                             .kept = static_cast<int>(arrived.size()) - moved},
                   .arguments = std::move(arguments)});
  }
  emitter_.set_phase(before);
}

}  // namespace orthant::schedule
