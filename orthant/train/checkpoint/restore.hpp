#pragma once

#include "orthant/engine/session.hpp"
#include "orthant/train/checkpoint/directory.hpp"

#include <optional>
#include <vector>

namespace orthant::train::checkpoint {

/// Which checkpoints may be taken.
enum class Choice {
  newest_good,  ///< for any plan; those that are damaged are skipped
  exact         ///< the newest one, for the same plan and settings
};

/// A checkpoint that was chosen.
struct Found {
  std::int64_t step = 0;
  Manifest manifest;
  std::vector<Skipped> skipped;
};

/// Collective. The newest checkpoint whose every byte is as it was written; ranks share the files to be read. Nothing
/// if there is no checkpoint at all. Throws CollectiveError if there are some but none is good or, with `exact`, if the
/// newest is not.
std::optional<Found> find(const Directory& directory, Choice choice, comm::Comm& comm);

/// Throws Error (65) if a run cannot go on from the checkpoint: another network, other samples, another seed. `run` is
/// how it would begin. With `exact`, if anything else than the length differs.
void check_fits(const State& checkpoint, const State& run, Choice choice);

/// Reads weights, optimizer state and running statistics into a session of any plan. Every rank reads what it holds.
/// Throws Error that names file and tensor.
void load(engine::Session& session, const model::Optimizer& optimizer, const Directory& directory,
          const Manifest& manifest);

/// Whether two plans (JSON) cut the network alike, whatever kernels they run.
bool is_same_cut(const std::string& plan, const std::string& other);

}  // namespace orthant::train::checkpoint
