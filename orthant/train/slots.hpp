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

/// The slots of the schedule's rank.
std::vector<Slot> slots_of(const schedule::Schedule& schedule);

/// Reads a box of a sample into memory of its size: floats, or labels as the network wants them.
void read_box(const data::sets::Dataset& dataset, const data::sets::SampleShape& shape, std::int64_t sample,
              data::sets::Role role, const tensor::Box& box, std::span<std::byte> into);
/// Turns a dense box as `orientation` says and puts it into the engine's memory.
void put_box(const Slot& slot, const data::sets::Orientation& orientation, std::span<const std::byte> box,
             engine::Engine& engine);

/// A box of a sample, and how it is turned on its way into a slot.
struct SlotSource {
  const data::sets::Dataset& dataset;
  const data::sets::SampleShape& shape;
  std::int64_t sample = 0;
  tensor::Box box;  ///< before it is turned
  data::sets::Orientation orientation{};
};

/// Reads a box and puts it into its slot: directly into the engine's memory if it is not turned and contiguous there,
/// otherwise through `room`, which grows as needed.
void fill_slot(const Slot& slot, const SlotSource& source, std::vector<std::byte>& room, engine::Engine& engine);

}  // namespace orthant::train
