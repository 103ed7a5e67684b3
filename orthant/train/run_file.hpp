#pragma once

#include "orthant/model/document.hpp"
#include "orthant/model/network.hpp"
#include "orthant/model/task.hpp"
#include "orthant/train/checkpoint/options.hpp"
#include "orthant/train/data_options.hpp"
#include "orthant/train/learning_rate.hpp"
#include "orthant/train/number_options.hpp"
#include "orthant/train/validation_options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace orthant::train {

/// What a run file says, with defaults filled in. docs/run-file.md describes every key.
struct RunFile {
  std::string model;
  model::NetworkOptions network;
  std::int64_t epochs = 0;  ///< 0: `steps` says how long
  std::int64_t steps = 0;   ///< 0: `epochs` says how long
  model::Optimizer optimizer;
  LearningRate learning_rate;
  DataOptions data;
  ValidationOptions validation;
  std::uint64_t seed = 1;
  int threads = 0;              ///< 0: one per core
  std::string error;            ///< class of the kernels' errors, exact or fast; empty: the plan's
  std::string weights;          ///< safetensors to start from; empty: initial values
  std::string output;           ///< run directory; empty: a new one under runs/
  bool overwrite = false;       ///< of an earlier run in `output`
  std::int64_t save_every = 0;  ///< steps between saved weights; 0: only at the end
  checkpoint::Options checkpoint;
  NumberOptions numbers;
};

/// Puts "dotted.key=value" into the document, making maps on the way; the value is YAML. Steps replace epochs,
/// and epochs steps.
void apply_override(model::Document& document, const std::string& key_and_value);

/// Reads a run; `origin` names it in messages. Throws Error for unknown keys, wrong types and values that make no
/// sense.
RunFile read_run(const model::Document& document, const std::string& origin);
RunFile load_run(const std::string& path, const std::vector<std::string>& overrides);

/// The run with every default written out; read_run reads it back.
model::Document to_document(const RunFile& run);

}  // namespace orthant::train
