#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace orthant::wrapper {

/// Workspaces of kernels that run, lent to one thread at a time and kept for the next: there are as many as threads have
/// been in convolutions at once. Programs are told that no workspace is needed.
class Workspaces {
 public:
  class Loan {
   public:
    Loan(Workspaces& lender, std::int64_t bytes) : lender_(lender), block_(lender.take(bytes)) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() { lender_.give_back(block_); }
    [[nodiscard]] std::byte* data() const { return block_.data; }

   private:
    struct Block {
      std::byte* data = nullptr;
      std::int64_t bytes = 0;
    };
    friend class Workspaces;
    Workspaces& lender_;
    Block block_;
  };

  Workspaces() = default;
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;
  ~Workspaces();

 private:
  Loan::Block take(std::int64_t bytes);
  void give_back(Loan::Block block);

  std::mutex mutex_;
  std::vector<Loan::Block> free_;
};

}  // namespace orthant::wrapper
