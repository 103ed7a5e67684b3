#include "orthant/train/slots.hpp"

#include <cstring>

namespace orthant::train {

std::vector<Slot> slots_of(const schedule::Schedule& schedule) {
  std::vector<Slot> slots;
  const auto add = [&](const std::vector<schedule::Port>& ports, data::sets::Role role) {
    for (const schedule::Port& port : ports) {
      if (port.buffer < 0 || tensor::is_empty(port.box)) continue;
      for (std::int64_t n = port.box.lo.n; n < port.box.hi.n; ++n) {
        Slot slot{.role = role, .n = n, .box = port.box, .buffer = port.buffer, .layout = port.layout};
        slot.box.set(tensor::Dim::n, {0, 1});
        slot.layout.extents.n = 1;
        slot.layout.offset += (n - port.box.lo.n) * port.layout.strides.n;
        slots.push_back(slot);
      }
    }
  };
  add(schedule.inputs, data::sets::Role::source);
  add(schedule.targets, data::sets::Role::target);
  return slots;
}

void read_box(const data::sets::Dataset& dataset, const data::sets::SampleShape& shape, std::int64_t sample,
              data::sets::Role role, const tensor::Box& box, std::span<std::byte> into) {
  const auto items = static_cast<std::size_t>(tensor::volume(box));
  const std::span<float> floats(reinterpret_cast<float*>(into.data()), items);
  if (role == data::sets::Role::source) {
    dataset.read_input(sample, box, floats);
  } else if (shape.labels) {
    dataset.read_labels(sample, box, {reinterpret_cast<std::int32_t*>(into.data()), items});
  } else {
    dataset.read_values(sample, box, floats);
  }
}

void put_box(const Slot& slot, const data::sets::Orientation& orientation, std::span<const std::byte> box,
             engine::Engine& engine) {
  // Floats are copied as whole numbers of the same size.
  const std::span<std::int32_t> memory = engine.labels(slot.buffer);
  if (tensor::is_dense(slot.layout) && orientation == data::sets::Orientation{}) {
    std::memcpy(memory.data() + slot.layout.offset, box.data(), box.size());
    return;
  }
  const std::span<const std::int32_t> items(reinterpret_cast<const std::int32_t*>(box.data()),
                                            box.size() / sizeof(std::int32_t));
  data::sets::turn<std::int32_t>(orientation, items, slot.layout, memory);
}

void fill_slot(const Slot& slot, const SlotSource& source, std::vector<std::byte>& room, engine::Engine& engine) {
  const auto bytes = static_cast<std::size_t>(data::sets::box_bytes(source.box));
  const auto read = [&](std::span<std::byte> into) {
    read_box(source.dataset, source.shape, source.sample, slot.role, source.box, into);
  };
  if (tensor::is_dense(slot.layout) && source.orientation == data::sets::Orientation{}) {
    const std::span<std::byte> memory = std::as_writable_bytes(engine.labels(slot.buffer));
    read(memory.subspan(static_cast<std::size_t>(slot.layout.offset) * sizeof(float), bytes));
    return;
  }
  if (room.size() < bytes) room.resize(bytes);
  const std::span<std::byte> box(room.data(), bytes);
  read(box);
  put_box(slot, source.orientation, box, engine);
}

}  // namespace orthant::train
