#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace orthant::wrapper {

/// Workspaces of kernels that run, lent to one thread at a time and kept for the next: there are as many as threads
/// have been in convolutions at once. Programs are told that no workspace is needed. When no convolution has run for a
/// while a thread gives most of the memory back, so that it does not add to what the program needs elsewhere.
class Workspaces {
  struct Block {
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    std::int64_t used_bytes = 0;  ///< from the beginning, since memory was given back
  };

 public:
  class Loan {
   public:
    Loan(Workspaces& lender, std::int64_t bytes) : lender_(lender), block_(lender.take(bytes)) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() { lender_.give_back(block_); }
    [[nodiscard]] std::byte* data() const { return block_.data; }

   private:
    Workspaces& lender_;
    Block block_;
  };

  Workspaces() = default;
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  Block take(std::int64_t bytes);
  void give_back(Block block);
  void start_thread();
  void watch();
  void release();

  std::mutex mutex_;
  std::condition_variable used_;
  std::vector<Block> free_;
  Clock::time_point last_use_{};
  bool has_thread_ = false, is_large_ = false;
};

/// Memory that is about to be written for the first time gets large pages where the system has some: a page of 4 KiB
/// takes longer to get than to fill. Only for blocks so large that they are a mapping of their own.
void advise_large_pages(void* data, std::int64_t bytes);

}  // namespace orthant::wrapper
