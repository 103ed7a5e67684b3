#pragma once

#include "orthant/train/checkpoint/restore.hpp"

#include <optional>
#include <string>

namespace orthant::train {

/// Whether and how a run goes on where an earlier one stopped.
struct ResumeOptions {
  enum class Kind {
    none,
    newest,    ///< from the newest good checkpoint, with any plan
    exact,     ///< from the newest checkpoint, bit for bit: with the same plan and settings
    automatic  ///< as `newest` if there is a checkpoint, else from the beginning
  };
  Kind kind = Kind::none;
  std::string directory{};  ///< of the run; empty: the run file's output, or the newest under runs/
};

/// What a run goes on from.
struct Resumed {
  std::string directory;  ///< of the run
  checkpoint::Found found;
};

/// Collective. Nothing if the run is to begin. Throws CollectiveError if there is nothing to go on from.
std::optional<Resumed> find_resumed(const ResumeOptions& options, const std::string& output, const std::string& name,
                                    comm::Comm& comm);

/// Whether `automatic` may take the place of what is in a directory: a run that ended before its first checkpoint and
/// has saved nothing.
bool may_start_again(const std::string& directory);

}  // namespace orthant::train
