#pragma once

#include "orthant/data/sets/dataset.hpp"
#include "orthant/data/sets/intake.hpp"
#include "orthant/data/sets/orientation.hpp"
#include "orthant/engine/engine.hpp"

#include <span>
#include <vector>

namespace orthant::train {

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

/// A box of a sample and how it is turned before it is where a slot wants it.
struct SlotSource {
  const data::sets::Dataset& dataset;
  const data::sets::SampleShape& shape;
  std::int64_t sample = 0;
  tensor::Box box;  ///< before it is turned
  data::sets::Orientation orientation{};
};

/// Reads a box and puts it into its slot; straight into the engine's memory if it lies there as it is read, else by way
/// of `room`, which grows as needed.
void fill_slot(const Slot& slot, const SlotSource& source, std::vector<std::byte>& room, engine::Engine& engine);

}  // namespace orthant::train
