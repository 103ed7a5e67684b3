#include "orthant/train/numbers.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/io/crc32c.hpp"
#include "orthant/train/speakers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orthant::train {
namespace {

using base::Exit;

const float* first_non_finite(std::span<const float> items) {
  const auto* found =
      std::find_if(items.data(), items.data() + items.size(), [](float x) { return !std::isfinite(x); });
  return found == items.data() + items.size() ? nullptr : found;
}

/// What this rank has that is not finite; empty if nothing.
std::string own_non_finite(const engine::Session& session) {
  const engine::Engine& engine = session.engine();
  for (const schedule::ParameterBuffers& entry : session.schedule().parameters) {
    if (entry.value < 0) continue;
    const std::string& layer = session.graph().nodes[static_cast<std::size_t>(entry.parameter.node)].name;
    if (const float* bad = first_non_finite(engine.floats(entry.value)))
      return fmt::format("{} in '{}' of layer '{}'", *bad, entry.parameter.name, layer);
    const auto items = static_cast<std::size_t>(entry.updated.hi - entry.updated.lo);
    for (const schedule::Piece& state : entry.state) {
      const auto first = static_cast<std::size_t>(state.offset_bytes) / sizeof(float);
      if (const float* bad = first_non_finite(engine.floats(state.buffer).subspan(first, items)))
        return fmt::format("{} in what the optimizer keeps for '{}' of layer '{}'", *bad, entry.parameter.name, layer);
    }
  }
  return "";
}

/// A place in a list for every shard of every parameter: where each parameter's begin, and last their number.
std::vector<std::size_t> first_shards(const engine::Session& session) {
  std::vector<std::size_t> first{0};
  for (const schedule::ParameterBuffers& entry : session.schedule().parameters)
    first.push_back(first.back() + speakers_of(session.plan(), session.graph(), entry.parameter.node).size());
  return first;
}

/// Whether all holders of the parameter must have the same numbers.
bool is_replicated(const engine::Session& session, const schedule::ParameterBuffers& entry) {
  if (entry.parameter.trainable) return true;
  return plan::statistics_group(session.plan(), session.graph(), entry.parameter.node, session.comm().rank()).ranks ==
         entry.holders;
}

}  // namespace

std::string non_finite_text(const engine::Session& session) {
  comm::Comm& comm = session.comm();
  const std::string mine = own_non_finite(session);
  const int first = comm::min(comm, mine.empty() ? comm.size() : comm.rank());
  if (first == comm.size()) return "";
  auto size = static_cast<std::int64_t>(mine.size());
  comm::broadcast(comm, std::span(&size, 1), first);
  std::string text = mine;
  text.resize(static_cast<std::size_t>(size));
  comm::broadcast(comm, std::span(text), first);
  return fmt::format("rank {} has {}", first, text);
}

void check_finite_weights(const engine::Session& session) {
  comm::agree(session.comm(), [&] {
    for (const schedule::ParameterBuffers& entry : session.schedule().parameters) {
      if (entry.value < 0) continue;
      if (const float* bad = first_non_finite(session.engine().floats(entry.value)))
        base::fail(Exit::non_finite, "'{}' has the number {}; weights that are not finite are not saved",
                   entry.parameter.name, *bad);
    }
  });
}

void check_replicas(const engine::Session& session, std::int64_t step) {
  comm::Comm& comm = session.comm();
  if (comm.size() == 1) return;
  const std::vector<std::size_t> first = first_shards(session);
  std::vector<std::int64_t> least(first.back(), std::numeric_limits<std::int64_t>::max()), most(first.back(), -1),
      mine(first.back(), -1);
  const auto& parameters = session.schedule().parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const schedule::ParameterBuffers& entry = parameters[i];
    if (entry.value < 0 || !is_replicated(session, entry)) continue;
    const std::vector<int> speakers = speakers_of(session.plan(), session.graph(), entry.parameter.node);
    // The shard is that of its first holder.
    const auto shard =
        static_cast<std::size_t>(std::find(speakers.begin(), speakers.end(), entry.holders.front()) - speakers.begin());
    if (shard == speakers.size()) continue;
    const std::size_t place = first[i] + shard;
    mine[place] = least[place] = most[place] = data::io::crc32c(std::as_bytes(session.engine().floats(entry.value)));
  }
  comm.all_reduce(least, comm::Reduction::min);
  comm.all_reduce(most, comm::Reduction::max);
  const auto differs = [&](std::size_t place) { return most[place] >= 0 && least[place] != most[place]; };
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    for (std::size_t place = first[i]; place < first[i + 1]; ++place) {
      if (!differs(place)) continue;
      const std::vector<std::int64_t> all = comm::all_gather(comm, mine[place]);
      // Those that differ from most of the others are to blame; of two nobody knows which.
      std::int64_t usual = -1;
      std::ptrdiff_t count = 0;
      for (const std::int64_t sum : all) {
        const std::ptrdiff_t equal = sum < 0 ? 0 : std::count(all.begin(), all.end(), sum);
        if (equal > count) usual = sum;
        count = std::max(count, equal);
      }
      std::vector<int> ranks;
      for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (all[rank] >= 0 && (all[rank] != usual || count == 1)) ranks.push_back(static_cast<int>(rank));
      throw comm::CollectiveError(
          Exit::disagreement,
          fmt::format("after step {} '{}' is not the same on all ranks that hold it: {} {} {}; check the memory of "
                      "{} machine{}, and go on with --resume",
                      step, parameters[i].parameter.name, ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "),
                      count == 1 ? "differ from each other" : "differ from the others",
                      ranks.size() == 1 ? "its" : "their", ranks.size() == 1 ? "" : "s"));
    }
  }
}

StepCopy::StepCopy(const engine::Engine& engine) {
  const schedule::Schedule& schedule = engine.schedule();
  for (const schedule::ParameterBuffers& entry : schedule.parameters)
    if (entry.value >= 0) buffers_.push_back(entry.value);
  for (const schedule::Bucket& bucket : schedule.buckets)
    buffers_.insert(buffers_.end(), bucket.state.begin(), bucket.state.end());
  for (const int buffer : buffers_) copies_.emplace_back(engine.item_count(buffer));
}

void StepCopy::take(const engine::Engine& engine) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) engine.read(buffers_[i], copies_[i]);
}

/// Ranks of a machine may have weights in common: nobody goes on before all have written.
void StepCopy::put_back(engine::Engine& engine, comm::Comm& comm) const {
  comm.barrier();
  for (std::size_t i = 0; i < buffers_.size(); ++i) engine.write(buffers_[i], copies_[i]);
  comm.barrier();
}

}  // namespace orthant::train
