#include "orthant/train/loader.hpp"

#include "orthant/train/slots.hpp"

namespace orthant::train {

Loader::Loader(const MiniBatches& batches)
    : dataset_(batches.dataset()), mini_batch_(batches.mini_batch()), stream_(batches.stream()) {}

void Loader::load(std::int64_t step, engine::Engine& engine) {
  for (const Slot& slot : slots_of(engine.schedule())) {
    const Draw draw = stream_.at((step - 1) * mini_batch_ + slot.n);
    fill_slot(slot,
              {.dataset = dataset_,
               .shape = stream_.shape(),
               .sample = draw.sample,
               .box = stream_.source(draw, slot.role, slot.box),
               .orientation = draw.orientation},
              room_, engine);
  }
}

}  // namespace orthant::train
