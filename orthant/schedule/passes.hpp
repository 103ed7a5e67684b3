#pragma once

#include "orthant/schedule/schedule.hpp"

#include <vector>

namespace orthant::schedule {

/// One micro-batch on its way forward or backward through the stages [first_stage, end_stage) of the pipeline.
struct StagePass {
  Phase phase = Phase::forward;
  int micro_batch = 0;
  int first_stage = 0, end_stage = 1;
  bool operator==(const StagePass&) const = default;
};

/// The order in which `rank` takes micro-batches through the stages, each stage of each micro-batch once per phase.
///
/// All ranks take their orders out of one order of all passes, so that any two of them meet the stages they share in
/// the same order: they cannot wait for each other in a circle, whichever ranks a stage has. Where stages share no
/// ranks it is one forward, one backward (1F1B; Narayanan et al., SOSP'19), and where ranks have several stages their
/// passes are interleaved.
///
/// A pass covers, beside a stage of the rank's own, the stages up to its next one, in which it has nothing to compute:
/// after its own forward pass it sends what those read, and before its own backward pass it receives their gradients.
std::vector<StagePass> passes_of(const plan::Plan& plan, int rank, Mode mode);

}  // namespace orthant::schedule
