#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/engine/engine.hpp"

#include <string>

namespace orthant::train {

/// Collective. Rank 0 writes the traces of all ranks as Chrome trace JSON, readable in Perfetto. pid is the rank; the
/// first row has one event per step with its implementation, flops and buffers, the rows below it the messages from
/// their start to their finish.
void write_trace(const std::string& path, const engine::Engine& engine, const engine::Trace& trace, comm::Comm& comm);

/// Room for `runs` runs, within reason, so that recording does not allocate.
engine::Trace make_trace(const engine::Engine& engine, std::int64_t runs);
/// True while one more run fits.
bool has_room(const engine::Engine& engine, const engine::Trace& trace);

}  // namespace orthant::train
