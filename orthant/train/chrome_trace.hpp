#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/engine/engine.hpp"

#include <memory>
#include <string>

namespace orthant::train {

/// Opens the file for a trace on rank 0, before the run, so that a file that cannot be written is found at once and not
/// hours later. Returns nothing on other ranks or without a path.
std::unique_ptr<data::io::OutputFile> open_trace(const std::string& path, const comm::Comm& comm);

/// Collective. Rank 0 writes the traces of all ranks as Chrome trace JSON, readable in Perfetto. pid is the rank; the
/// first row has one event per step with its implementation, flops and buffers, the rows below it the messages from
/// their start to their finish.
void write_trace(data::io::OutputFile* file, const engine::Engine& engine, const engine::Trace& trace,
                 comm::Comm& comm);

/// Reserves memory for `runs` runs, up to a limit, so that recording does not allocate.
engine::Trace make_trace(const engine::Engine& engine, std::int64_t runs);
/// True while one more run fits.
bool has_room(const engine::Engine& engine, const engine::Trace& trace);

}  // namespace orthant::train
