#pragma once

#include "orthant/engine/engine.hpp"

#include <string>

namespace orthant::train {

/// The trace as Chrome trace JSON, readable in Perfetto: one event per step with its implementation, flops and buffers.
/// pid is the rank.
std::string chrome_trace(const engine::Engine& engine, const engine::Trace& trace, int rank = 0);

/// Room for `runs` runs, within reason, so that recording does not allocate.
engine::Trace make_trace(const engine::Engine& engine, std::int64_t runs);
/// True while one more run fits.
bool has_room(const engine::Engine& engine, const engine::Trace& trace);

}  // namespace orthant::train
