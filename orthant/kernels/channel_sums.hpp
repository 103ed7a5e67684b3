#pragma once

#include "orthant/kernels/lines.hpp"

#include <cstdint>

namespace orthant::kernels {

/// Sums per channel over many rows, exact enough for any count: each thread sums blocks of rows in float
/// and the blocks in double; threads are added in order. All memory is the caller's scratch.
class ChannelSums {
 public:
  /// Rows that may be summed in float between two calls of flush().
  static constexpr std::int64_t block_rows = 128;

  /// `kinds` sums per channel; rows hold `factor` pixels of `channels` items side by side.
  ChannelSums(int kinds, std::int64_t channels, std::int64_t factor, int threads);

  [[nodiscard]] std::int64_t bytes() const { return thread_bytes_ * threads_; }
  [[nodiscard]] std::int64_t width() const { return width_; }

  /// Sets a thread's sums to zero.
  void clear(void* scratch, int thread) const;
  /// The float sums of one kind and thread: width() items.
  [[nodiscard]] float* block(void* scratch, int thread, int kind) const;
  /// Adds a thread's float sums to its double ones and zeroes them.
  void flush(void* scratch, int thread) const;
  /// Adds all pixels of part `index` of `team` of a tensor to kind 0; needs no flush.
  void add(void* scratch, int thread, const Lines& lines, const float* items, int index, int team) const;
  /// The sum over threads and over the pixels of a row.
  [[nodiscard]] double total(const void* scratch, int team, int kind, std::int64_t channel) const;
  /// The sum of one thread.
  [[nodiscard]] double thread_total(const void* scratch, int thread, int kind, std::int64_t channel) const;

 private:
  [[nodiscard]] std::int64_t items() const { return kinds_ * width_; }

  std::int64_t kinds_, channels_, factor_, width_;
  int threads_;
  std::int64_t thread_bytes_;
};

/// Counts the rows that a thread has summed in float.
class RowCount {
 public:
  /// Counts `rows` more; true if the sums must be flushed before.
  bool is_full(std::int64_t rows) {
    rows_ += rows;
    if (rows_ <= ChannelSums::block_rows) return false;
    rows_ = rows;
    return true;
  }

 private:
  std::int64_t rows_ = 0;
};

}  // namespace orthant::kernels
