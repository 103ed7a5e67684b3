#include "orthant/train/checkpoint/restore.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/formats/npy.hpp"
#include "orthant/data/io/crc32c.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/train/checkpoint/hashed_file.hpp"
#include "orthant/train/checkpoint/own_state.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

namespace orthant::train::checkpoint {
namespace {

using base::Exit;
using base::fail;

plan::Plan without_kernels(plan::Plan plan) {
  plan.error = {};
  for (plan::NodePlan& node : plan.nodes) node.kernels = {};
  return plan;
}

/// Throws Error if a step's checkpoint is not whole. Each rank verifies some of the files.
Manifest verified(const Directory& directory, std::int64_t step, comm::Comm& comm) {
  const std::string text = comm::on_root(comm, [&] { return to_json(directory.read(step)); });
  Manifest manifest = comm::agree(comm, [&] { return from_json(text, "'" + directory.of(step) + "'"); });
  comm::agree(comm, [&] {
    for (std::size_t i = 0; i < manifest.files.size(); ++i) {
      if (static_cast<int>(i % static_cast<std::size_t>(comm.size())) == comm.rank())
        verify_file(directory.of(step), manifest.files[i]);
    }
  });
  return manifest;
}

/// Reads tensors out of the files of a checkpoint.
class Reader {
 public:
  Reader(std::string directory, const Manifest& manifest) : directory_(std::move(directory)), manifest_(manifest) {}

  /// A part of a tensor, in the order of files. Items that the part does not have are left as they are.
  void read(const std::string& name, const std::string& part, std::span<float> whole) {
    const Tensor& tensor = manifest_.tensors.at(name);
    const engine::ParameterBox extents = engine::whole_box({.extents = tensor.extents});
    for (const Piece& piece : tensor.parts.at(part)) {
      items_.resize(static_cast<std::size_t>(engine::volume(piece.box)));
      const data::io::InputFile& file = open(piece.file);
      const std::span<std::byte> bytes = std::as_writable_bytes(std::span(items_));
      file.read(piece.offset, bytes);
      if (const std::uint32_t sum = data::io::crc32c(bytes); sum != piece.crc32c) {
        fail(Exit::bad_data, "'{}': a piece of '{}' ({}) at byte {} has the checksum {:08x}, but {:08x} is expected",
             file.path(), name, part, piece.offset, sum, piece.crc32c);
      }
      put(piece.box, extents, whole);
    }
  }

 private:
  const data::io::InputFile& open(int index) {
    auto& file = files_[index];
    if (!file)
      file = std::make_unique<data::io::InputFile>(directory_ + "/" +
                                                   manifest_.files[static_cast<std::size_t>(index)].name);
    return *file;
  }

  void put(const engine::ParameterBox& box, const engine::ParameterBox& extents, std::span<float> whole) const {
    const float* from = items_.data();
    const std::int64_t taps = box.taps.hi - box.taps.lo;
    for (std::int64_t first = box.first.lo; first < box.first.hi; ++first) {
      for (std::int64_t second = box.second.lo; second < box.second.hi; ++second, from += taps) {
        const std::int64_t to = (first * extents.second.hi + second) * extents.taps.hi + box.taps.lo;
        std::copy(from, from + taps, whole.begin() + to);
      }
    }
  }

  std::string directory_;
  const Manifest& manifest_;
  std::map<int, std::unique_ptr<data::io::InputFile>> files_;
  std::vector<float> items_;
};

void check_tensors_of(const Manifest& manifest, const schedule::Schedule& schedule, const model::Graph& graph,
                      const std::string& path, const std::vector<std::string>& states) {
  for (const auto& entry : schedule.parameters) {
    const std::string& name = entry.parameter.name;
    const auto found = manifest.tensors.find(name);
    if (found == manifest.tensors.end()) fail(Exit::bad_data, "'{}' lacks tensor '{}' of {}", path, name, graph.name);
    if (found->second.extents != entry.parameter.extents) {
      fail(Exit::bad_data, "'{}': tensor '{}' has shape {}, but {} wants {}", path, name,
           data::formats::extents_text(found->second.extents), graph.name,
           data::formats::extents_text(entry.parameter.extents));
    }
    for (const std::string& state : states) {
      if (entry.parameter.trainable && !found->second.parts.contains(state))
        fail(Exit::bad_data,
             "'{}' has no '{}' of '{}', which the optimizer needs; resume with the optimizer of the run", path, state,
             name);
    }
  }
  if (manifest.tensors.size() != schedule.parameters.size())
    fail(Exit::bad_data, "'{}' has {} tensors, but {} has {}", path, manifest.tensors.size(), graph.name,
         schedule.parameters.size());
}

template <class Value>
void check_same(const char* what, const Value& in_checkpoint, const Value& in_run, const char* advice) {
  if (in_checkpoint == in_run) return;
  fail(Exit::bad_data, "the checkpoint has {} {}, but the run {}; {}", what, in_checkpoint, in_run, advice);
}

/// The first line in which two texts differ, as "a" and "b".
std::string first_difference(const std::string& a, const std::string& b) {
  std::size_t at = 0, next_a = 0, next_b = 0;
  const auto line = [](const std::string& text, std::size_t& next) {
    const std::size_t begin = std::min(next, text.size()), end = std::min(text.find('\n', begin), text.size());
    next = end + 1;
    return text.substr(begin, end - begin);
  };
  while (at <= std::max(a.size(), b.size())) {
    const std::string one = line(a, next_a), other = line(b, next_b);
    if (one != other) return fmt::format("'{}' and '{}'", one, other);
    at = std::min(next_a, next_b);
  }
  return "their lengths";
}

}  // namespace

bool is_same_cut(const std::string& plan, const std::string& other) {
  return without_kernels(plan::from_json(plan, "the plan of a checkpoint")) ==
         without_kernels(plan::from_json(other, "the plan"));
}

std::optional<Found> find(const Directory& directory, Choice choice, comm::Comm& comm) {
  std::vector<std::int64_t> steps;
  const auto count = comm::on_root(comm, [&] {
    steps = directory.steps();
    return static_cast<std::int64_t>(steps.size());
  });
  steps.resize(static_cast<std::size_t>(count));
  comm::broadcast(comm, std::span(steps), 0);
  if (steps.empty()) return std::nullopt;
  Found found;
  for (const std::int64_t step : steps) {
    try {
      found.manifest = verified(directory, step, comm);
      found.step = step;
      return found;
    } catch (const comm::CollectiveError& error) {
      found.skipped.push_back({directory.of(step), error.what()});
      if (choice == Choice::exact) break;
    }
  }
  std::string reasons;
  for (const Skipped& one : found.skipped) reasons += "; " + one.reason;
  throw comm::CollectiveError(Exit::bad_data,
                              fmt::format("no checkpoint in '{}' can be used{}", directory.path(), reasons));
}

void check_fits(const State& checkpoint, const State& run, Choice choice) {
  constexpr const char* start = "start a new run with `weights` instead";
  check_same("the network", checkpoint.network, run.network, start);
  check_same("a mini-batch of", checkpoint.mini_batch, run.mini_batch, start);
  check_same("an epoch of samples:", checkpoint.samples, run.samples, "give it the same data");
  check_same("the seed", checkpoint.seed, run.seed, "give it the same one");
  check_same("the optimizer", checkpoint.optimizer, run.optimizer, start);
  if (choice != Choice::exact) return;
  constexpr const char* resume = "use --resume without exact";
  check_same("ranks:", checkpoint.ranks, run.ranks, resume);
  check_same("threads:", checkpoint.threads, run.threads, resume);
  check_same("the program", checkpoint.program, run.program, resume);
  if (checkpoint.settings != run.settings)
    fail(Exit::bad_data, "the checkpoint and the run have different settings: {}; {}",
         first_difference(checkpoint.settings, run.settings), resume);
  if (checkpoint.plan != run.plan)
    fail(Exit::bad_data, "the checkpoint and the run have different plans: {}; {}",
         first_difference(checkpoint.plan, run.plan), resume);
}

void load(engine::Session& session, const model::Optimizer& optimizer, const Directory& directory,
          const Manifest& manifest) {
  const std::string path = directory.of(manifest.state.step);
  const std::vector<std::string> states = state_parts(optimizer);
  check_tensors_of(manifest, session.schedule(), session.graph(), path, states);
  const bool same_cut = is_same_cut(manifest.state.plan, plan::to_json(session.plan()));
  Reader reader(path, manifest);
  std::vector<float> whole;
  for (const schedule::ParameterBuffers& entry : session.schedule().parameters) {
    if (entry.value < 0) continue;
    const std::string& name = entry.parameter.name;
    whole.resize(static_cast<std::size_t>(model::count(entry.parameter)));
    reader.read(name, value_part, whole);
    const int leader = statistics_leader(session, entry);
    if (same_cut && leader >= 0 && manifest.tensors.at(name).parts.contains(rank_part(leader)))
      reader.read(name, rank_part(leader), whole);
    session.set_parameter(entry, whole);
    const tensor::Range& items = entry.updated;
    for (std::size_t i = 0; i < states.size() && items.lo < items.hi && entry.parameter.trainable; ++i) {
      reader.read(name, states[i], whole);
      const schedule::Piece& piece = entry.state.at(i);
      engine::to_kernel_order(session.graph(), entry.parameter, entry.shard, items, whole,
                              session.engine()
                                  .floats(piece.buffer)
                                  .subspan(static_cast<std::size_t>(piece.offset_bytes) / sizeof(float),
                                           static_cast<std::size_t>(items.hi - items.lo)));
    }
  }
}

}  // namespace orthant::train::checkpoint
