#pragma once

#include "orthant/schedule/schedule.hpp"

#include <span>
#include <string>
#include <vector>

namespace orthant::schedule {

/// What is wrong with a schedule, one line for each mistake; nothing if it can run. Checked are, against the list of
/// each task's arguments:
/// - arguments: all that are required are there, and all lie in their buffers; so do messages, and pieces of buffers;
/// - reads: every byte that is read or sent was written, received, or there before the run;
/// - lifetimes: a buffer lives while steps use it, and while messages from and to it are in flight;
/// - messages in flight: what is sent is not written, and what is received is not touched; nor are common weights that
///   another rank may be updating;
/// - exchanges: each starts once and ends once after it, with a tag that tells it from those in flight with it.
std::vector<std::string> verify(const Schedule& schedule);

/// The same for the schedules of all ranks, and together: every message has its other side, of the same size; no rank
/// waits for ever; what is read in place stays until it has been read.
std::vector<std::string> verify(std::span<const Schedule> ranks);

/// Throws Error with the first mistakes that verify() finds, if any.
void check(const Schedule& schedule);

}  // namespace orthant::schedule
