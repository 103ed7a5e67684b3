#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/train/delivery.hpp"
#include "orthant/train/mini_batches.hpp"
#include "orthant/train/prefetch.hpp"
#include "orthant/train/slots.hpp"

#include <optional>
#include <vector>

namespace orthant::train {

struct FeedOptions {
  std::int64_t steps = 0;        ///< of the run: samples of later steps are not read
  bool keep = false;             ///< in memory, from the first epoch on
  std::int64_t limit_bytes = 0;  ///< of what this rank keeps
  std::int64_t first = 1;        ///< the step to begin with: what earlier ones would have kept is read at once
};

/// What is kept in memory; all 0 if nothing is to be kept or used again.
struct StoreSize {
  std::int64_t samples = 0;        ///< how many are kept: those that are read first
  std::int64_t bytes = 0;          ///< on all ranks
  std::int64_t largest_bytes = 0;  ///< on the rank that has most
  std::int64_t set_bytes = 0;      ///< what all ranks take of the whole set
};

/// What the samples of one epoch cost.
struct EpochIo {
  std::int64_t file_bytes = 0;        ///< taken from files
  std::int64_t store_bytes_sent = 0;  ///< from this rank's memory to other ranks
  double wait_seconds = 0;            ///< in which a rank did nothing but wait for samples
};

/// A line for each epoch.
std::vector<std::string> to_lines(const std::vector<EpochIo>& epochs);

/// Puts this rank's boxes of mini-batches into the engine's buffers. While the step before is computed, a thread reads
/// them, or the ranks that kept them in the first epoch send them.
class SampleFeed {
 public:
  /// Collective. The data and the engine must outlive it.
  SampleFeed(const MiniBatches& batches, engine::Engine& engine, comm::Comm& comm, const FeedOptions& options);

  [[nodiscard]] const StoreSize& store() const { return size_; }
  /// What this rank keeps.
  [[nodiscard]] std::int64_t held_bytes() const { return store_ ? store_->bytes() : 0; }
  /// Collective. The mini-batch of `step`; steps come one after the other, from the first on.
  void load(std::int64_t step);
  /// Collective. Must be called after the last load(): samples of a further step may be on their way.
  void finish();
  /// Collective. By epoch: bytes of all ranks together, the wait of the rank that waited longest.
  [[nodiscard]] std::vector<EpochIo> totals() const;

 private:
  /// The box for a slot, once it has arrived.
  struct Ready {
    std::span<const std::byte> bytes;
    data::sets::Orientation orientation;
  };

  void decide_store(const FeedOptions& options);
  void fill_store(std::int64_t first);
  void prepare(std::int64_t step);
  void read(const Draw& draw, const data::sets::Take& take, bool keep);
  void fetch(const Draw& draw, const data::sets::Take& take);
  void give(const Draw& draw, const data::sets::Take& take, std::span<const data::sets::Take> mine);
  void wait();
  [[nodiscard]] data::sets::Held staging(const data::sets::Take& take, const tensor::Box& box) const;
  EpochIo& epoch(std::int64_t epoch);

  engine::Engine& engine_;
  comm::Comm& comm_;
  std::int64_t steps_;
  SampleStream stream_;
  std::vector<Slot> slots_;
  data::sets::Intake intake_;
  std::optional<data::sets::SampleStore> store_;
  StoreSize size_;
  data::io::LargeBlock staging_;  ///< a mini-batch that is not kept
  Prefetch prefetch_;
  Delivery delivery_;
  std::vector<Read> reads_;
  std::vector<Ready> ready_;              ///< per slot
  std::int64_t last_ = 0, prepared_ = 0;  ///< steps
  bool wants_own_samples_ = false;  ///< messages that need boxes which this rank still reads start after the reading
  std::vector<EpochIo> epochs_;
};

}  // namespace orthant::train
