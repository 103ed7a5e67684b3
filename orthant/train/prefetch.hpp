#pragma once

#include "orthant/data/sets/dataset.hpp"
#include "orthant/data/sets/intake.hpp"

#include <future>
#include <span>
#include <vector>

namespace orthant::train {

/// A box to be read, and the memory it goes to.
struct Read {
  std::int64_t epoch = 0, sample = 0;
  data::sets::Role role = data::sets::Role::source;
  tensor::Box box;
  std::span<std::byte> into;
};

/// Reads boxes in a thread of its own while the engine computes. The thread exists only while there is something to
/// read.
class Prefetch {
 public:
  Prefetch(const data::sets::Dataset& dataset, const data::sets::SampleShape& shape);
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;
  /// Waits for the thread.
  ~Prefetch();

  void start(std::vector<Read> reads);
  /// Returns when every box has been read, and rethrows the error of one that could not be. Calls
  /// count(epoch, bytes taken from files) for each box.
  template <class Count>
  void wait(Count count) {
    if (!reading_.valid()) return;
    const std::vector<std::int64_t> bytes = reading_.get();
    for (std::size_t i = 0; i < bytes.size(); ++i) count(reads_[i].epoch, bytes[i]);
  }
  /// Returns when the thread has stopped reading; errors are ignored.
  void drop();

 private:
  [[nodiscard]] std::vector<std::int64_t> read_all() const;

  const data::sets::Dataset& dataset_;
  data::sets::SampleShape shape_;
  std::vector<Read> reads_;
  std::future<std::vector<std::int64_t>> reading_;  ///< bytes of each
};

}  // namespace orthant::train
