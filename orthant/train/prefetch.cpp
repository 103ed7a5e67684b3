#include "orthant/train/prefetch.hpp"

#include "orthant/train/slots.hpp"

namespace orthant::train {

Prefetch::Prefetch(const data::sets::Dataset& dataset, const data::sets::SampleShape& shape)
    : dataset_(dataset), shape_(shape) {}

Prefetch::~Prefetch() { drop(); }

std::vector<std::int64_t> Prefetch::read_all() const {
  std::vector<std::int64_t> bytes;
  for (const Read& read : reads_) {
    const std::int64_t before = dataset_.bytes_read();
    read_box(dataset_, shape_, read.sample, read.role, read.box, read.into);
    bytes.push_back(dataset_.bytes_read() - before);
  }
  return bytes;
}

void Prefetch::start(std::vector<Read> reads) {
  reads_ = std::move(reads);
  if (reads_.empty()) return;
  // If no thread can be started, wait() does the reading.
  reading_ = std::async(std::launch::async | std::launch::deferred, [this] { return read_all(); });
}

void Prefetch::drop() {
  if (reading_.valid() && reading_.wait_for(std::chrono::seconds(0)) != std::future_status::deferred) reading_.wait();
  reading_ = {};
}

}  // namespace orthant::train
