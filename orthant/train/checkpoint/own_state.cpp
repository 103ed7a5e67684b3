#include "orthant/train/checkpoint/own_state.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/data/io/crc32c.hpp"
#include "orthant/train/checkpoint/hashed_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace orthant::train::checkpoint {
namespace {

using base::Exit;
using base::fail;

std::int64_t items_in(const tensor::Range& range) { return range.hi - range.lo; }

/// "conv1.weight", or "exp_avg:conv1.weight[0:16,0:4,9:27]" for a part of it: no other parameter can have that name.
std::string stored_name(const std::string& tensor, const std::string& part, const model::Parameter& parameter,
                        const engine::ParameterBox& box) {
  std::string name = part == value_part ? tensor : part + ":" + tensor;
  if (box == engine::whole_box(parameter)) return name;
  return name + fmt::format("[{}:{},{}:{},{}:{}]", box.first.lo, box.first.hi, box.second.lo, box.second.hi,
                            box.taps.lo, box.taps.hi);
}

std::vector<std::int64_t> stored_extents(const model::Parameter& parameter, const engine::ParameterBox& box) {
  if (box == engine::whole_box(parameter)) return parameter.extents;
  return {items_in(box.first), items_in(box.second), items_in(box.taps)};
}

}  // namespace

std::vector<std::string> state_parts(const model::Optimizer& optimizer) {
  if (optimizer.kind != model::OptimizerKind::sgd) return {"exp_avg", "exp_avg_sq"};
  if (model::state_count(optimizer) == 1) return {"momentum_buffer"};
  return {};
}

int statistics_leader(const engine::Session& session, const schedule::ParameterBuffers& entry) {
  if (entry.parameter.trainable) return -1;
  const plan::StatisticsGroup group =
      plan::statistics_group(session.plan(), session.graph(), entry.parameter.node, session.comm().rank());
  return group.ranks.empty() || group.ranks == entry.holders ? -1 : group.ranks.front();
}

OwnState::OwnState(const engine::Session& session, const model::Optimizer& optimizer) : rank_(session.comm().rank()) {
  const std::vector<std::string> names = state_parts(optimizer);
  for (const schedule::ParameterBuffers& entry : session.schedule().parameters) {
    if (entry.value < 0) continue;
    const tensor::Range whole{0, plan::count(entry.parameter, entry.shard)};
    if (!entry.parameter.trainable) {
      if (entry.holders.front() == rank_) add(session, entry, value_part, {.buffer = entry.value}, whole);
      if (statistics_leader(session, entry) == rank_)
        add(session, entry, rank_part(rank_), {.buffer = entry.value}, whole);
      continue;
    }
    const tensor::Range& items = entry.updated;
    if (items.lo == items.hi) continue;
    const auto offset = items.lo * static_cast<std::int64_t>(sizeof(float));
    add(session, entry, value_part, {.buffer = entry.value, .offset_bytes = offset}, items);
    for (std::size_t i = 0; i < names.size(); ++i) add(session, entry, names[i], entry.state.at(i), items);
  }
  std::size_t items = 0;
  for (Source& source : sources_) {
    source.offset = items;
    items += static_cast<std::size_t>(items_in(source.items));
  }
  copy_.resize(items);
}

void OwnState::add(const engine::Session& session, const schedule::ParameterBuffers& entry, const std::string& part,
                   const schedule::Piece& piece, const tensor::Range& items) {
  Source source{.tensor = entry.parameter.name,
                .part = part,
                .parameter = &entry.parameter,
                .buffer = piece.buffer,
                .first = static_cast<std::size_t>(piece.offset_bytes) / sizeof(float),
                .items = items,
                .offset = 0,
                .order = engine::KernelOrder(session.graph(), entry.parameter, entry.shard),
                .parts = {}};
  source.parts = source.order.parts_of(items);
  sources_.push_back(std::move(source));
}

void OwnState::copy(const engine::Engine& engine) {
  for (const Source& source : sources_) {
    const std::span<const float> from =
        engine.floats(source.buffer).subspan(source.first, static_cast<std::size_t>(items_in(source.items)));
    std::memcpy(copy_.data() + source.offset, from.data(), from.size_bytes());
  }
}

std::span<const float> OwnState::memory(const Source& source) const {
  return std::span(copy_).subspan(source.offset, static_cast<std::size_t>(items_in(source.items)));
}

std::string OwnState::header(const State& state) const {
  base::Json header{
      {"__metadata__",
       {{"format", "pt"}, {"network", state.network}, {"run", state.run}, {"step", fmt::format("{}", state.step)}}}};
  std::int64_t at = 0;
  for (const Source& source : sources_) {
    for (const engine::KernelOrder::Part& part : source.parts) {
      const std::int64_t end = at + engine::volume(part.box) * static_cast<std::int64_t>(sizeof(float));
      header[stored_name(source.tensor, source.part, *source.parameter, part.box)] = {
          {"dtype", "F32"}, {"shape", stored_extents(*source.parameter, part.box)}, {"data_offsets", {at, end}}};
      at = end;
    }
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

Written OwnState::write(const std::string& directory, const std::string& name, const State& state) const {
  Written written;
  if (sources_.empty()) return written;
  HashedFile file(directory, name);
  const std::string text = header(state);
  const std::uint64_t length = text.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(text)));
  std::vector<float> items;
  for (const Source& source : sources_) {
    const std::span<const float> from = memory(source);
    if (!std::all_of(from.begin(), from.end(), [](float value) { return std::isfinite(value); }))
      fail(Exit::non_finite, "'{}' ({}) has numbers that are not finite on rank {}; they are not saved", source.tensor,
           source.part, rank_);
    Tensor& tensor = written.tensors[source.tensor];
    tensor.extents = source.parameter->extents;
    for (const engine::KernelOrder::Part& part : source.parts) {
      items.resize(static_cast<std::size_t>(engine::volume(part.box)));
      source.order.to_file_order(part, source.items, from, items);
      const auto bytes = std::as_bytes(std::span<const float>(items));
      tensor.parts[source.part].push_back(
          {.file = 0, .offset = file.bytes(), .crc32c = data::io::crc32c(bytes), .box = part.box});
      file.write(bytes);
    }
  }
  written.files.push_back(file.finish());
  return written;
}

}  // namespace orthant::train::checkpoint
