#pragma once

#include "orthant/engine/engine.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/train/run_file.hpp"
#include "orthant/train/sample_stream.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace orthant::train {

/// What `graph` wants of one sample.
data::sets::SampleShape sample_shape(const model::Graph& graph);

/// What is to be known of a run's files before they are opened, as text: one rank finds it out for all. Throws Error
/// for files that cannot be read.
std::string survey_data(const DataOptions& options);

/// Opens the data of a run, with what survey_data() said; throws Error where it does not fit the network.
std::unique_ptr<data::sets::Dataset> open_data(const DataOptions& options, const model::Graph& graph,
                                               const std::string& survey);

/// A box that a rank takes of the n-th sample of every mini-batch, and where the engine wants it.
struct Slot {
  data::sets::Role role = data::sets::Role::source;
  std::int64_t n = 0;
  tensor::Box box;  ///< in the sample; its n is [0, 1)
  int buffer = -1;
  tensor::Layout layout;
};

/// What the rank of a schedule takes.
std::vector<Slot> slots_of(const schedule::Schedule& schedule);

/// Reads a box of a sample into memory of its size: floats, or labels as the network wants them.
void read_box(const data::sets::Dataset& dataset, const data::sets::SampleShape& shape, std::int64_t sample,
              data::sets::Role role, const tensor::Box& box, std::span<std::byte> into);
/// Puts a box that was read, dense, into the engine's memory, turned.
void put_box(const Slot& slot, const data::sets::Orientation& orientation, std::span<const std::byte> box,
             engine::Engine& engine);

/// Puts this rank's boxes of mini-batches into the engine's buffers, straight from the data.
class Loader {
 public:
  /// Throws Error if the data has fewer samples than a mini-batch.
  Loader(const data::sets::Dataset& dataset, const model::Graph& graph, const StreamOptions& options);

  [[nodiscard]] const data::sets::Dataset& dataset() const { return dataset_; }
  [[nodiscard]] const SampleStream& stream() const { return stream_; }
  [[nodiscard]] std::int64_t mini_batch() const { return mini_batch_; }
  /// Steps after which every sample has been used so many times, some perhaps once more.
  [[nodiscard]] std::int64_t steps_of(std::int64_t epochs) const;
  [[nodiscard]] std::int64_t steps_per_epoch() const { return steps_of(1); }
  /// The epoch (from 1) of the first sample of a step (from 1).
  [[nodiscard]] std::int64_t epoch_of(std::int64_t step) const;
  /// Loads the mini-batch of `step` (counts from 1): samples [(step - 1) * mini-batch, step * mini-batch) of the
  /// stream.
  void load(std::int64_t step, engine::Engine& engine);

 private:
  const data::sets::Dataset& dataset_;
  std::int64_t mini_batch_;
  SampleStream stream_;
  std::vector<std::byte> room_;  ///< for a box on its way
};

}  // namespace orthant::train
